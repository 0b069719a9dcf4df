"""Faults of the machine in the middle of a trial are errors, never results, and the sentence names what failed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dnsrig.errors import DnsrigError
from dnsrig.experiment import runner, trial
from dnsrig.lab import network
from dnsrig.lab.links.tun import TunLink
from dnsrig.lab.process import Process
from dnsrig.procedures.context import faults
from dnsrig.procedures.context.faults import Faults
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.rundir import LinkSpec
from dnsrig.servers.builds import build

Usage = namedtuple("Usage", "total used free")


@dataclass
class Trial:
    """What `Faults` looks at."""

    directory: Path
    storage: str = "disk"
    needed: list[Path] = field(default_factory=list)
    instruments: dict[str, Any] = field(default_factory=dict)
    links: list[Any] = field(default_factory=list)

    def faults(self) -> Faults:
        lab = network.Network({}, [], made=[(LinkSpec(ends=("a", "b")), link) for link in self.links])
        workspace = SimpleNamespace(spec=SimpleNamespace(storage=self.storage), directory=self.directory, network=lab)
        servers = SimpleNamespace(placements={"secondary": None})
        parts: list[Any] = [workspace, SimpleNamespace(started=self.instruments), servers]
        return Faults(*parts, self.needed)


@pytest.fixture
def healthy(tmp_path: Path) -> Trial:
    (tmp_path / "servers/secondary").mkdir(parents=True)
    (tmp_path / "servers/secondary/server.log").write_text("ready\n")
    return Trial(tmp_path)


def test_nothing_is_wrong(healthy: Trial) -> None:
    healthy.faults().check()


@pytest.mark.parametrize(("storage", "full"), [("disk", "run"), ("memory", "/dev/shm")])
def test_a_full_disk_is_named(healthy: Trial, monkeypatch: pytest.MonkeyPatch, storage: str, full: str) -> None:
    folder = healthy.directory if full == "run" else Path(full)
    usual = shutil.disk_usage(healthy.directory)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 123_456) if Path(path) == folder else usual)
    healthy.storage = storage
    with pytest.raises(
        DnsrigError, match=rf"the disk is full: 0\.1 MB are free on /\S*, where {folder} lies"
    ) as raised:
        healthy.faults().check()
    assert "--resume" in raised.value.hint


@pytest.mark.parametrize(
    ("refuses", "least_bytes"),
    [
        (faults.check_disk, 16 << 20),
        (lambda folder: runner._check_disk(folder, "then start it again"), 1 << 30),
        (lambda folder: build._check_disk(), 2_000_000_000),
    ],
    ids=["during a trial", "before a trial", "before a build"],
)
def test_one_byte_less_than_the_least_is_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[[Path], None], least_bytes: int
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, least_bytes))
    refuses(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, least_bytes - 1))
    with pytest.raises(DnsrigError, match="disk"):
        refuses(tmp_path)


def test_whatever_fails_on_a_full_disk_names_the_disk(healthy: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no rows"), faults.full_disk_named(healthy.directory):
        raise ValueError("no rows")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    with pytest.raises(DnsrigError, match="the disk is full"), faults.full_disk_named(healthy.directory):
        raise ValueError("no rows")


def test_a_disk_that_was_full_for_a_moment_is_known_from_the_servers_log(healthy: Trial) -> None:
    log = healthy.directory / "servers/secondary/server.log"
    log.write_text("x" * 100_000 + "\nerror: write example.zone: No space left on device\nclosing\n")
    with pytest.raises(DnsrigError, match="the disk is full: the server on host secondary could not write"):
        healthy.faults().check()


def test_a_cache_that_is_removed_is_named(healthy: Trial, tmp_path: Path) -> None:
    healthy.needed = [tmp_path / "cache/roots/forky"]
    healthy.needed[0].mkdir(parents=True)
    found = healthy.faults()
    found.check()
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(DnsrigError, match=r"cache/roots/forky, which this trial reads, was removed while it ran"):
        found.check()


def test_an_instrument_that_ended_is_a_fault(healthy: Trial) -> None:
    def check() -> None:
        raise DnsrigError("the instrument watch was ended by SIGKILL")

    healthy.instruments = {"watch": SimpleNamespace(check=check)}
    with pytest.raises(DnsrigError, match="watch was ended by SIGKILL"):
        healthy.faults().check()


def test_an_emulated_link_that_ended_is_a_fault(healthy: Trial) -> None:
    (healthy.directory / "link.stderr").write_text("cannot write link.arrow\nhint: see df\n")
    popen = subprocess.Popen(["sh", "-c", "exit 1"], text=True)
    popen.wait()
    link = TunLink("a-b", Process("link", "a", [], popen), Path("none"), healthy.directory / "link.stderr")
    healthy.links = [link]
    with pytest.raises(DnsrigError, match=r"the link a-b exited with status 1: cannot write link\.arrow") as raised:
        healthy.faults().check()
    assert raised.value.hint == "see df"
    link.process.stopped_by_us = True
    healthy.faults().check()


def test_it_looks_now_and_then(healthy: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []
    monkeypatch.setattr(Faults, "_check_programs", lambda self: looks.append(True))
    found = healthy.faults()
    found.look()
    found.look()
    assert looks == [True]
    monkeypatch.setattr(faults, "LOOK_EVERY_S", 0.0)
    found.look()
    assert len(looks) == 2


def failing(monkeypatch: pytest.MonkeyPatch, fault: str) -> Any:
    """The context of a trial whose server ended, on a machine with ``fault``."""

    def measure(context: Any) -> None:
        raise ServerFailed("nsd on host secondary exited with status 1")

    def check() -> None:
        if fault:
            raise DnsrigError(fault)

    monkeypatch.setattr(trial, "procedure", lambda name: SimpleNamespace(measure=measure))
    return cast(Any, SimpleNamespace(spec=SimpleNamespace(procedure=""), faults=SimpleNamespace(check=check)))


def test_a_server_that_fails_is_a_result_if_the_machine_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trial._measure(failing(monkeypatch, "")).outcome == "server-failed"
    with pytest.raises(DnsrigError, match="the disk is full"):
        trial._measure(failing(monkeypatch, "the disk is full"))


STOPPED = """
import os, signal, sys, time
from dnsrig.lab import stopped
with stopped.noticed() as stops:
    print("ready", flush=True)
    while sys.stdin.readline():
        time.sleep(2 * stopped.TICK_S)
        try:
            stops.check()
            print("not stopped", flush=True)
            stopped.TICK_S = stopped.STOPPED_LEAST_S = 0.05
        except Exception as error:
            print(error, flush=True)
"""


def test_a_process_that_was_stopped_knows_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGCONT)  # which comes to processes that are not stopped, too
        print(file=process.stdin)
        assert process.stdout.readline() == "not stopped\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        print(file=process.stdin)
        assert process.stdout.readline().startswith("the process of this trial was stopped for ")
        process.stdin.close()
