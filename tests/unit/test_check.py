"""`dnsrig check`: what it says of links and kernels, without looking at any."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dnsrig.cli import check as command
from dnsrig.lab import check, conditions, congestion, disturbances, idle, removal, uml
from dnsrig.lab.links import netem, tun
from dnsrig.lab.remark import Remark


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)


@pytest.mark.parametrize(
    ("by_kernel", "by_engine", "grades", "says"),
    [
        (True, True, ["good", "good"], "by default"),
        (False, True, ["note", "good"], 'take link = "tun" by themselves'),
        (False, False, ["note", "note"], "mknod /dev/net/tun"),
    ],
)
def test_links(monkeypatch: pytest.MonkeyPatch, by_kernel: bool, by_engine: bool, grades: list[str], says: str) -> None:
    monkeypatch.setattr(netem, "available", lambda: by_kernel)
    monkeypatch.setattr(tun, "available", lambda: by_engine)
    found = list(check._links())
    assert [one.grade for one in found] == grades
    assert any(says in one.says + one.remedy for one in found)


def test_congestion_controls_that_are_lacking_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "available", lambda: ("bbr", "cubic", "reno"))
    (found,) = check._congestion()
    assert found.grade == "note" and "not hybla, illinois" in found.says
    assert "tcp_hybla tcp_illinois" in found.remedy and 'kernel = "uml"' in found.remedy


@pytest.mark.parametrize(("is_there", "grade"), [(True, "good"), (False, "note")])
def test_idle_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool, grade: str) -> None:
    device = tmp_path / "cpu_dma_latency"
    if is_there:
        device.touch()
    monkeypatch.setattr(idle, "DEVICE", device)
    (found,) = disturbances._idle()
    assert found.grade == grade and (is_there or str(device) in found.remedy)


@pytest.mark.parametrize(("says", "remarks"), [("1", 1), ("0", 0), (None, 0)])
def test_autogroups(monkeypatch: pytest.MonkeyPatch, says: str | None, remarks: int) -> None:
    monkeypatch.setattr(conditions, "read", lambda path: says if path == conditions.AUTOGROUPS else None)
    found = list(disturbances._autogroups())
    assert len(found) == remarks and all(one.grade == "note" and "=0" in one.remedy for one in found)


@pytest.mark.parametrize(
    ("why", "cached", "says"),
    [
        ("no apt-get", False, "no apt-get"),
        (None, False, "fetched when it is first needed"),
        (None, True, "congestion controls cubic, hybla"),
    ],
)
def test_kernel_uml(monkeypatch: pytest.MonkeyPatch, why: str | None, cached: bool, says: str) -> None:
    kernel = SimpleNamespace(release="6.1.1", congestion_controls=lambda: ["cubic", "hybla"])
    monkeypatch.setattr(uml, "available", lambda: why)
    monkeypatch.setattr(uml, "find", lambda: kernel if cached else None)
    (found,) = check._uml()
    assert says in found.says and found.grade == ("note" if why else "good")


def test_brackets_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(removal, "clean", lambda: ([], []))
    monkeypatch.setattr(check, "remarks", lambda: iter([Remark("link", "note", "none", "for a [path]")]))
    with pytest.raises(SystemExit, match="0"):
        command.command()
    assert "[path]" in capsys.readouterr().out
