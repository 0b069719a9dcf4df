"""Starts programs on hosts, through the engine's `enter`, and stops them.

`enter` joins the host's cgroup and network namespace, confines the program if it is not ours, takes its CPUs and then
becomes the program: no process stays in between, and the moment of execve is recorded.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dnsrig import confinement, paths
from dnsrig.confinement import Confinement
from dnsrig.lab.host import Host
from dnsrig.lab.remote_machine import Program, RemotePopen
from dnsrig.rundir import Privileges

STOP_LIMIT_S = 10.0
FIRST = 2
"""Priority in real time; `load` has 1."""


@dataclass
class Process:
    """A program that was started on a host."""

    name: str
    host: str
    command: list[str]
    popen: subprocess.Popen[str] | RemotePopen
    stamp_file: Path | None = None
    stopped_by_us: bool = False
    stop_signal: signal.Signals = signal.SIGTERM
    """Asks it to end; SIGKILL follows if it does not."""

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    def exec_ns(self) -> int | None:
        """Monotonic ns, of its machine, immediately before execve; None if it did not come to that, or no stamp was
        asked for."""
        try:
            text = self.stamp_file.read_text() if self.stamp_file else ""
        except FileNotFoundError:
            return None
        return int(json.loads(text)["exec_monotonic_ns"]) if text else None

    def stop(self, *, limit_s: float = STOP_LIMIT_S) -> None:
        """``stop_signal``, then SIGKILL after ``limit_s``."""
        if self.running:
            self.stopped_by_us = True
            self.popen.send_signal(self.stop_signal)
            try:
                self.popen.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def go_first(self) -> bool:
        """Go before everything else on its CPU, also before `load` in real time: for one that needs little, and that in
        time.

        Whether it does now, as read back: SCHED_FIFO (sched(7)) is a right that not everyone has.
        """
        if isinstance(self.popen, RemotePopen):
            return self.popen.go_first()
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                os.sched_setscheduler(int(thread.name), os.SCHED_FIFO, os.sched_param(FIRST))
            return os.sched_getscheduler(self.pid) == os.SCHED_FIFO
        return False

    def how_it_ended(self) -> str:
        """A few words for an unexpected end: the signal or the exit status."""
        status = self.popen.poll()
        if status is None:
            return "is still running"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"exited with status {status}"


def start(
    name: str,
    host: Host,
    command: Sequence[str],
    *,
    confined: Confinement | None = None,
    workdir: str | None = None,
    environment: dict[str, str] | None = None,
    stamp_file: Path | None = None,
    stdin: int | None = subprocess.DEVNULL,
    stdout: IO[str] | IO[bytes] | int | None = None,
    stderr: IO[str] | IO[bytes] | int | None = None,
) -> Process:
    """Start ``command`` on ``host``. It dies with the calling process (PR_SET_PDEATHSIG).

    Without ``confined`` it is a program of ours: it runs as root and sees the machine.
    """
    if host.machine is not None:
        program = Program(list(command), confined, workdir, environment, stamp_file)
        reads = stdin == subprocess.PIPE
        there = host.machine.start(host.name, program, reads=reads, stdout=stdout, stderr=stderr)
        return Process(name, host.name, program.command, there, stamp_file)
    arguments = [str(paths.engine()), "enter"]
    if host.namespace:
        arguments += ["--netns", str(host.namespace_path)]
    for folder in host.cgroups:
        arguments += ["--cgroup", str(folder)]
    arguments += ["--cpus", ",".join(map(str, host.spec.cpus))]
    unprivileged = confined is not None and not confined.as_root
    if confined is not None:
        arguments += confined.arguments()
    if confined is not None and unprivileged:
        confined.give()
        environment = {"HOME": confinement.HOME, **(environment or {})}
    if workdir is not None:
        arguments += ["--workdir", workdir]
    for key, value in (environment or {}).items():
        arguments += ["--env", f"{key}={value}"]
    if stamp_file is not None:
        arguments += ["--stamp", str(stamp_file)]
    with host.pid_namespace.inside() if unprivileged else contextlib.nullcontext():
        popen = subprocess.Popen(
            [*arguments, "--", *command],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=confinement.ENVIRONMENT,
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
        )
    return Process(name, host.name, list(command), popen, stamp_file)


def threads(pid: int) -> int:
    """Count the threads of a process of this machine; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:")), 0)


def privileges(pid: int) -> Privileges | None:
    """What a process of this machine may do; None if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    status = dict(line.split(":", 1) for line in lines)
    if "Uid" not in status or "CapEff" not in status:
        return None
    return Privileges(
        user=int(status["Uid"].split()[1]),
        capabilities=confinement.capabilities(int(status["CapEff"], 16)),
        no_new_privileges=status.get("NoNewPrivs", "").strip() == "1",
        own_pid_namespace=len(status.get("NSpid", "").split()) > 1,
    )


@contextlib.contextmanager
def on_cpu(cpu: int | None) -> Iterator[None]:
    """What this thread starts inside may run on ``cpu`` only; None: wherever the thread may."""
    before = os.sched_getaffinity(0)
    try:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        yield
    finally:
        os.sched_setaffinity(0, before)


def move_to(cpus: set[int]) -> None:
    """All threads of this process run on ``cpus`` from now on, as far as the machine has them."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it may have ended, or the machine may have fewer CPUs
            os.sched_setaffinity(int(thread.name), cpus)
