import struct
from pathlib import Path

import pytest

from dnsrig.lab import idle, uml


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As /dev/cpu_dma_latency where nobody asks for anything: 2,000 s."""
    path = tmp_path / "cpu_dma_latency"
    path.write_bytes(struct.pack("=i", 2_000_000_000))
    monkeypatch.setattr(idle, "DEVICE", path)
    monkeypatch.setattr(uml, "inside", lambda: False)
    return path


@pytest.mark.parametrize(("wanted", "us"), [(True, 0), (False, 2_000_000_000)])
def test_what_is_asked_for_is_read_back(device: Path, wanted: bool, us: int) -> None:
    with idle.awake(wanted):
        assert idle.wakeup_latency_us() == us


def test_where_it_cannot_be_asked_for_a_trial_goes_on(device: Path) -> None:
    device.unlink()
    with idle.awake():
        assert idle.wakeup_latency_us() is None


def test_a_kernel_in_a_process_does_not_tell(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml, "inside", lambda: True)
    assert idle.wakeup_latency_us() is None
