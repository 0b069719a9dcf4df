"""What a trial calls on another machine that has hosts of it: makes hosts and links, starts programs, looks at both.

The other machine executes one trial at a time. What was made there is removed with the process that made it, and what a
killed process left at the next start (`removal.clean`). Arguments and results travel as JSON: see
`RemoteMachine.call`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import conditions, host, idle, ledger, links, listener, process, removal, tcp
from dnsrig.lab.host import Host
from dnsrig.lab.ledger import Ledger
from dnsrig.lab.links import Place, ends, selftest
from dnsrig.lab.process import Process
from dnsrig.lab.remote_machine import Program
from dnsrig.rundir import HostSpec, LinkSpec

Tell = Callable[..., None]
Neighbour = tuple[str, HostSpec]
"""A host that is not on this machine: its name, and what it is to be."""
END_LIMIT_S = 5.0


@dataclass
class Lab:
    """What one trial has on this machine."""

    tell: Tell
    ledger: Ledger = field(default_factory=Ledger.open_new)
    hosts: dict[str, Host] = field(default_factory=dict)
    processes: dict[int, Process] = field(default_factory=dict)
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """What is let go at the end."""

    @property
    def folder(self) -> Path:
        """The folder for files of the trial on this machine."""
        return _trials() / self.ledger.tag


_labs: list[Lab] = []


def begin(tell: Tell) -> None:
    """Prepare for a trial, before anything else is called. ``tell`` reports what programs write, and that they
    ended."""
    removal.clean()
    remove_leftovers()
    lab = Lab(tell)
    lab.folder.mkdir(parents=True)
    _labs.append(lab)


def end() -> None:
    """Remove all that was made here."""
    while _labs:
        lab = _labs.pop()
        for started in lab.processes.values():
            started.stop(limit_s=END_LIMIT_S)
        for one in lab.hosts.values():
            one.pid_namespace.close()
        lab.held.close()
        left = removal.remove(lab.ledger)
        shutil.rmtree(lab.folder, ignore_errors=True)
        if left:
            raise DnsrigError(f"could not remove {', '.join(left)}", hint="run `dnsrig clean` there to try again")


def remove_leftovers() -> None:
    """Remove folders of trials whose process is gone."""
    live = ledger.live()
    for folder in _trials().iterdir() if _trials().is_dir() else ():
        if folder.name not in live:
            shutil.rmtree(folder, ignore_errors=True)


def look() -> dict[str, Any]:
    """Report where things are on this machine, and what the machine is."""
    return {
        "folder": str(_lab().folder),
        "cache": str(paths.cache()),
        "engine": str(paths.engine()),
        "cpus": sorted(os.sched_getaffinity(0)),
        "conditions": conditions.snapshot(),
    }


def stay_awake() -> None:
    """Keep idle CPUs awake until the end of the trial (``idle.py``)."""
    _lab().held.enter_context(idle.awake(True))


def moment() -> dict[str, Any]:
    return conditions.moment(_lab().folder, _lab().ledger.tag)


def clocks() -> list[int]:
    """CLOCK_MONOTONIC and CLOCK_REALTIME, in ns."""
    return [time.monotonic_ns(), time.time_ns()]


def make_host(name: str, spec: HostSpec) -> dict[str, Any]:
    """Make a host; returns the fields of the `Host`. Of a server that runs already, only the cgroup is looked up."""
    lab = _lab()
    if spec.network == "machine":
        lab.hosts[name] = Host(name, spec, namespace="")  # without the cgroup, which programs would join
        return {"namespace": "", "cgroups": listener.cgroups(spec.address, spec.ports["udp"])}
    made = lab.hosts[name] = host.make(lab.ledger, name, spec)
    facts = {"nic_address": made.nic_address, "nic_facts": made.nic_facts}
    return {"namespace": made.namespace, "cgroups": made.cgroups, "sysctls": made.sysctls, **facts}


def join(name: str, there: Neighbour, neighbour: str, mtu_bytes: int) -> None:
    """Join a host of this machine, by its interface, to a host of another machine, whose hardware address is
    ``neighbour``."""
    here = _lab().hosts[name]
    ends.set_up(here, _absent(there), mtu_bytes=mtu_bytes, neighbour=neighbour, interface=here.spec.nic)


def link(left: str, right: str, spec: LinkSpec, number: int) -> None:
    """Make a plain link between two hosts of this machine."""
    lab = _lab()
    ends = lab.hosts[left], lab.hosts[right]
    links.kinds()[spec.kind].make(*ends, spec, Place(lab.ledger, ends[0], number, spec.seed))


def check_link(name: str, there: Neighbour, spec: LinkSpec) -> dict[str, Any]:
    return selftest.check(_lab().hosts[name], _absent(there), spec, 0.0)


def settle(name: str, neighbours: list[Neighbour]) -> dict[str, Any]:
    return tcp.settle(_lab().hosts[name], [_absent(there) for there in neighbours])


def start(number: int, name: str, program: Program, reads: bool) -> int:
    """Start a program on the host ``name``; it is known as ``number`` from then on. Returns its pid."""
    lab = _lab()
    started = process.start(
        Path(program.command[0]).name,
        lab.hosts[name],
        program.command,
        confined=program.confined,
        workdir=program.workdir,
        environment=program.environment,
        stamp_file=program.stamp_file,
        stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    lab.processes[number] = started
    readers = [
        threading.Thread(target=_read, args=(lab, number, stream, getattr(started.popen, stream)), daemon=True)
        for stream in ("stdout", "stderr")
    ]
    for reader in readers:
        reader.start()
    threading.Thread(target=_wait, args=(lab, number, started, readers), daemon=True).start()
    return started.pid


def send_signal(number: int, signal_number: int) -> None:
    started = _lab().processes[number]
    if started.running:
        started.popen.send_signal(signal.Signals(signal_number))


def write(number: int, text: str) -> None:
    stdin = _lab().processes[number].popen.stdin
    assert stdin is not None
    with contextlib.suppress(BrokenPipeError):  # that it ended is reported anyway
        stdin.write(text)
        stdin.flush()


def close_input(number: int) -> None:
    stdin = _lab().processes[number].popen.stdin
    if stdin is not None:
        with contextlib.suppress(OSError):
            stdin.close()


def go_first(number: int) -> bool:
    return _lab().processes[number].go_first()


def pids(name: str) -> set[int]:
    """Return the processes of a host."""
    return host.pids(_lab().hosts[name])


def threads(pids: list[int]) -> int:
    return sum(map(process.threads, pids))


def make_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)


def _trials() -> Path:
    return paths.cache() / "machines" / "trials"


def _lab() -> Lab:
    return _labs[-1]


def _absent(there: Neighbour) -> Host:
    return Host(*there, namespace="")


def _read(lab: Lab, number: int, stream: str, lines: IO[str]) -> None:
    with contextlib.suppress(ValueError):  # closed while it is read
        for line in lines:
            lab.tell(process=number, stream=stream, line=line)


def _wait(lab: Lab, number: int, started: Process, readers: list[threading.Thread]) -> None:
    status = started.popen.wait()
    for reader in readers:
        reader.join(END_LIMIT_S)
    lab.tell(process=number, ended=status)
