"""Servers that run already: started here by hand, on loopback, and measured without root."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import others
import pytest
from conftest import DNSRIG, wait_until
from ssh_machines import Machine, lab

from dnsrig import paths
from dnsrig.confinement import BindMount, Confinement
from dnsrig.lab import cgroup, process
from dnsrig.lab.host import Host
from dnsrig.rundir import HostSpec
from dnsrig.runs.cpu import busy_share, shares_of
from dnsrig.runs.run import Run
from dnsrig.servers import debian, driver, keys

WITHOUT_ROOT = ("unshare", "--user")
"""In a user namespace of its own a process has no right over anything of the machine, and no user id 0."""
LIMIT_S = 400
EXIT_INVALID = 6
"""No trial of a variant is valid: without root, the generator is late if others have the CPU."""
SEEN = "/mnt/files"
UNBOUND = """\
server:
  chroot: ""
  username: ""
  pidfile: ""
  do-daemonize: no
  use-syslog: no
  interface: 127.0.0.1@{udp}
  interface: 127.0.0.1@{dot}
  tls-port: {dot}
  tls-service-key: {seen}/tls-key.pem
  tls-service-pem: {seen}/tls-certificate.pem
  local-zone: "example.com." static
  local-data: "www.example.com. A 192.0.2.1"
"""
EXPERIMENT = """\
title = "A server that runs"
question = "How fast does it answer?"
procedure = "latency"
limit_s = 60
repeats = 1
hosts.resolver.server = "{server}"
[options]
serve_as = "resolver"
rate_qps = 300
duration_s = 0.5
clients = 4
warmup_s = 0
[queries]
file = "{queries}"
[matrix]
"options.transport" = ["udp", "tcp", "dot"]
"""


WATCHED = """\
title = "A server on another machine"
question = "What does it cost there?"
procedure = "latency"
limit_s = 60
repeats = 1
hosts.primary = {{ server = "{server}", watch = "ssh:rack-1" }}
options = {{ rate_qps = 300, duration_s = 1, clients = 4, warmup_s = 0 }}
queries.file = "{queries}"
"""


@dataclass(frozen=True)
class Place:
    """Where a server listens."""

    udp: int
    dot: int

    @property
    def server(self) -> str:
        return f"running@127.0.0.1:{self.udp},dot={self.dot}"


@pytest.fixture
def place() -> Place:
    """Two ports that nobody has, over UDP and TCP."""
    with ExitStack() as held:
        ports = []
        for _ in range(2):
            stream = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            datagram = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            datagram.bind(stream.getsockname())
            ports.append(stream.getsockname()[1])
    return Place(*ports)


@contextmanager
def unbound(place: Place, folder: Path, more: str = "") -> Iterator[process.Process]:
    """Unbound, started without dnsrig's drivers, as an operator starts it."""
    keys.make().write(folder, private=True)
    (folder / "unbound.conf").write_text(UNBOUND.format(udp=place.udp, dot=place.dot, seen=SEEN) + more)
    packages = driver("unbound").packages
    found = [root for root in debian.roots("forky", "unbound") if set(packages) <= root.packages.keys()]
    root = (found or [debian.build("forky", "unbound", packages)])[-1]
    confined = Confinement(root.path, [BindMount(folder, SEEN)], as_root=True)
    machine = Host("machine", HostSpec(address="127.0.0.1", cpus=[0, 1]), namespace="")
    with (folder / "log").open("wb") as log:
        command = ["unbound", "-d", "-c", f"{SEEN}/unbound.conf"]
        started = process.start("unbound", machine, command, confined=confined, stdout=log, stderr=log)
        try:
            wait_until(lambda: answers(place.dot) or not started.running, 20)
            assert started.running, (folder / "log").read_text()
            yield started
        finally:
            started.stop()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def run(folder: Path, *words: str, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    command = [*WITHOUT_ROOT, *DNSRIG, "run", *words, f"--runs={folder}/runs"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)


def experiment(folder: Path, server: str) -> str:
    (folder / "queries.txt").write_text("www.example.com A\nno.example.com AAAA\n")
    (folder / "mine.toml").write_text(EXPERIMENT.format(server=server, queries=folder / "queries.txt"))
    return str(folder / "mine.toml")


def measured(folder: Path) -> Run:
    (directory,) = (folder / "runs" / "mine").iterdir()
    return Run.open(directory)


def test_a_server_that_runs_is_measured_without_root(place: Place, tmp_path: Path) -> None:
    (files := tmp_path / "files").mkdir()
    with unbound(place, files):
        done = run(tmp_path, experiment(tmp_path, place.server))
    assert done.returncode in (0, EXIT_INVALID), done.stderr
    assert "without root" in done.stderr
    trials = measured(tmp_path).trials
    assert {str(trial.record.spec.options["transport"]) for trial in trials} == {"udp", "tcp", "dot"}
    for trial in trials:
        record = trial.record
        assert record.outcome == "done" or others.was_late(record), record.reason
        assert record.spec.server is not None and record.spec.server.version.startswith("unbound 1.")
        assert trial.load.rcodes == {"NOERROR": 75, "NXDOMAIN": 75}
        assert trial.value("p99_ms") is not None and trial.value("resolver_cpu_s") is None
        verdicts = {check.name: check.verdict for check in record.checks}
        assert verdicts["query-transport"] == "cannot-tell" and "failed" not in verdicts.values()
    assert "failed, and left out" not in done.stderr


def test_a_server_that_is_not_there_is_said_at_once(place: Place, tmp_path: Path) -> None:
    done = run(tmp_path, experiment(tmp_path, place.server))
    assert done.returncode == 1
    assert f"no server listens at 127.0.0.1:{place.udp} over UDP" in done.stderr and "hint: " in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.full
def test_refusals_are_no_latency(place: Place, tmp_path: Path) -> None:
    (files := tmp_path / "files").mkdir()
    with unbound(place, files, "  access-control: 127.0.0.0/8 refuse\n"):
        done = run(tmp_path, experiment(tmp_path, place.server), "--set", 'transport="udp"')
    (trial,) = measured(tmp_path).trials
    assert trial.record.outcome == "invalid" and done.returncode == EXIT_INVALID
    assert "was late" in trial.record.reason or "150 REFUSED: does the access list" in trial.record.reason


@pytest.mark.full
def test_a_server_that_stops_in_the_middle_fails(place: Place, tmp_path: Path) -> None:
    (files := tmp_path / "files").mkdir()
    words = [*WITHOUT_ROOT, *DNSRIG, "run", experiment(tmp_path, place.server), f"--runs={tmp_path}/runs"]
    words += ["--set", 'transport="udp"', "--set", "options.duration_s=20"]
    with unbound(place, files) as server, subprocess.Popen(words, stderr=subprocess.DEVNULL) as running:
        wait_until(lambda: any(tmp_path.rglob("load.stderr")), LIMIT_S)
        server.stop()
        running.wait(LIMIT_S)
    (trial,) = measured(tmp_path).trials
    assert trial.record.outcome == "server-failed"
    assert trial.record.reason.startswith("at the end of the measurement no server listens")


@contextmanager
def echo_on(machine: Machine, port: int, name: str) -> Iterator[None]:
    """A server that somebody else started on ``machine``, in a cgroup of its own."""
    folders = [
        tree.mount / name for tree in cgroup.hierarchies() if tree.version == 2 or "cpuset" not in tree.controllers
    ]
    for folder in folders:
        folder.mkdir()
    words = ["serve", "echo", f"{machine.address}:{port}", "--i-am-authorized", machine.address]
    within = ["nsenter", f"--target={machine.init}", "--net", "--pid", "--mount"]
    joined = f'for folder in {" ".join(map(str, folders))}; do echo $$ > $folder/cgroup.procs; done; exec "$@"'
    server = subprocess.Popen(["sh", "-c", joined, "sh", *within, str(paths.engine()), *words])
    try:
        yield
    finally:
        for pid in map(int, (folders[0] / "cgroup.procs").read_text().split()):
            os.kill(pid, signal.SIGTERM)  # nsenter, too, which passes no signals on
        server.wait(20)
        wait_until(lambda: not any((folder / "cgroup.procs").read_text() for folder in folders), 20)
        for folder in folders:
            folder.rmdir()


@pytest.mark.full
def test_the_machine_of_a_running_server_is_sampled(tmp_path: Path, python: Path, nothing_left: None) -> None:
    """CPU of the server, its drops and pressure stall information, on the clock of this machine."""
    (tmp_path / "queries.txt").write_text("www.example.com A\n")
    with lab(tmp_path / "lab", ["rack-1"], python, clocks_ns={"rack-1": 3_700_000_000}) as machines:
        machine = machines.machines["rack-1"]
        text = WATCHED.format(server=f"running@{machine.address}:5300", queries=tmp_path / "queries.txt")
        (tmp_path / "mine.toml").write_text(text)
        words = ["--machines", machines.on, "--i-am-authorized", machine.address, f"--runs={tmp_path}/runs"]
        command = [*machines.enter, *DNSRIG, "run", str(tmp_path / "mine.toml"), *words]
        with echo_on(machine, 5300, f"running-{machine.link}"):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        assert done.returncode in (0, EXIT_INVALID), done.stderr
        assert not machine.left_behind() and not [*machine.cache.glob("machines/trials/*")]
    assert "failed, and left out" not in done.stderr
    (trial,) = measured(tmp_path).trials
    clock = trial.record.machines["rack-1"].clock
    assert clock is not None and abs(clock.offset_ns - 3_700_000_000) <= clock.error_ns
    assert 0 < (busy_share(trial, "primary") or 0) <= 1
    assert shares_of(trial, "primary") is not None, "CPUs of its machine"
    assert (trial.growth("primary", "udp", "in_datagrams") or 0) >= 300
    for source, metric in (("psi", "cpu_full_us"), ("udp", "rcvbuf_errors"), ("cgroup", "memory_anonymous_bytes")):
        assert not trial.during_measure("primary", source, metric).is_empty(), metric
