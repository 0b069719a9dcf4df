"""User-mode Linux, as far as it can be tested without booting it."""

from __future__ import annotations

import json
import queue
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import synthetic

from dnsrig.errors import DnsrigError
from dnsrig.experiment import estimate
from dnsrig.experiment.executors import uml as under_uml
from dnsrig.lab import uml
from dnsrig.lab.uml import guest
from dnsrig.lab.uml import kernel as kernels
from dnsrig.rundir import HostSpec, Manifest, TrialSpec, read_json
from dnsrig.servers import debian

RELEASE = "6.1.999"


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the package in it, as far as it is looked at."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "inside", lambda: False)
    root = tmp_path / "roots" / kernels.SUITE / f"{kernels.NAME}-0123456789ab"
    modules = root / "usr/lib/uml/modules" / RELEASE
    (modules / "kernel/net/ipv4").mkdir(parents=True)
    for name in ("tcp_hybla", "tcp_diag"):
        (modules / "kernel/net/ipv4" / f"{name}.ko").touch()
    (modules / "modules.dep").write_text("kernel/net/sched/sch_netem.ko:\n")
    (modules / "modules.builtin").write_text("kernel/net/ipv4/tcp_cubic.ko\n")
    (root / "usr/bin").mkdir()
    (root / "usr/bin/linux.uml").touch()
    record = {"suite": kernels.SUITE, "packages": {kernels.NAME: "6.1um9"}, "layout": debian.LAYOUT_VERSION}
    (root / debian.RECORD).write_text(json.dumps(record))
    return root


def test_the_kernel_in_the_cache(cached: Path) -> None:
    found = uml.find()
    assert found is not None
    assert (found.version, found.release, found.program) == ("6.1um9", RELEASE, cached / "usr/bin/linux.uml")
    assert [found.has(name) for name in ("sch_netem", "tcp_cubic", "sch_cake")] == [True, True, False]
    assert found.congestion_controls() == ["cubic", "hybla", "reno"]


def test_a_root_without_a_kernel_is_none(cached: Path) -> None:
    (cached / "usr/bin/linux.uml").unlink()
    assert uml.find() is None


def test_why_it_cannot_be_had(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(kernels.shutil, "which", lambda name: None if name == "apt-get" else f"/usr/bin/{name}")
    assert uml.available() is None, "what is in the cache needs no apt-get"
    (cached / debian.RECORD).unlink()
    assert "without apt-get" in (uml.available() or "")
    monkeypatch.setattr(kernels.platform, "machine", lambda: "aarch64")
    assert "this is aarch64" in (uml.available() or "")
    with pytest.raises(DnsrigError, match="this is aarch64"):
        uml.install()


def test_only_what_is_hidden_inside_is_mounted_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    writable, seen = [Path("/var/runs")], [Path("/usr/lib/python3"), tmp_path / "file", tmp_path]
    hidden = any(tmp_path.resolve().is_relative_to(place) for place in guest.HIDDEN)
    expected = [(str(tmp_path.resolve()), False)] if hidden else []
    assert guest.folders(writable, seen) == sorted([*expected, ("/var/runs", True)])


def test_a_folder_that_is_written_to_stays_writable(tmp_path: Path) -> None:
    assert guest.folders([tmp_path], [tmp_path]) == [(str(tmp_path.resolve()), True)]


def test_outer_folders_are_mounted_before_inner_ones() -> None:
    paths = [path for path, _ in guest.folders([Path("/tmp/a/b"), Path("/tmp/a"), Path("/tmp/a/b/c")], [])]
    assert paths == ["/tmp/a", "/tmp/a/b", "/tmp/a/b/c"]


@pytest.mark.parametrize(("room_mb", "expected_mb"), [(100_000, guest.MEMORY_MB), (1_500, 750)])
def test_memory_is_a_share_of_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room_mb: int, expected_mb: int
) -> None:
    monkeypatch.setattr(guest, "_free_mb", lambda _: 200_000)
    monkeypatch.setattr(guest, "_available_mb", lambda: room_mb)
    assert guest.memory(tmp_path) == expected_mb


def test_too_little_memory_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "_free_mb", lambda _: 600)
    with pytest.raises(DnsrigError, match="too little memory for kernel uml"):
        guest.memory(tmp_path)


def test_the_kernel_s_last_words() -> None:
    def said(*lines: str) -> str:
        return uml.Guest(SimpleNamespace(), Path(), SimpleNamespace(), console=deque(lines)).last_words()  # type: ignore[arg-type]

    assert said("booting", "dnsrig init: OSError: no", "reboot: System halted") == "dnsrig init: OSError: no"
    assert said("booting", "") == "booting"
    assert said() == "its console says nothing"


def test_the_spec_inside(spec: TrialSpec) -> None:
    assert under_uml.modules(spec) == ["tcp_hybla"]
    assert {cpu for host in under_uml.inside(spec).hosts.values() for cpu in host.cpus} == {0}
    assert spec.hosts["secondary"].cpus == [3], "what was asked for is unchanged"


def test_a_trial_takes_longer_there(spec: TrialSpec) -> None:
    under = spec.model_copy(update={"kernel": "uml"})
    assert estimate.of_trial(under).expected_s > estimate.of_trial(spec).expected_s


@pytest.fixture
def spec(tmp_path: Path) -> TrialSpec:
    """Of a secondary on CPU 3 that wants another congestion control."""
    found = next(iter(read_json(synthetic.build(tmp_path) / "manifest.json", Manifest).specs.values()))
    host = HostSpec(address="198.18.0.2", cpus=[3], sysctls={under_uml.TCP_CONGESTION: "hybla"}, under_test=True)
    return found.model_copy(update={"hosts": {**found.hosts, "secondary": host}})


def test_a_kernel_that_falls_silent_is_given_up() -> None:
    machine = SimpleNamespace(events=queue.Queue(), last_words=lambda: "Kernel panic")
    heard: list[dict[str, Any]] = []
    for event in ({"event": "phase"}, {"event": "ended"}):
        machine.events.put(event)
    with pytest.raises(DnsrigError, match=r"sent no message for .*: Kernel panic"):
        under_uml._follow(machine, heard.append, limit_s=0.01)  # type: ignore[arg-type]
    assert heard == [{"event": "phase"}]
    machine.events.put(None)
    under_uml._follow(machine, heard.append, limit_s=0.01)  # type: ignore[arg-type]
