"""What is called on a machine that has hosts of a trial: it makes them, starts programs on them, and hands files over.

One trial at a time. Whatever was made there goes with the process that made it, and what a killed one left at the next
start (`removal.clean`).
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dnsrig import paths
from dnsrig.confinement import Confinement
from dnsrig.errors import DnsrigError
from dnsrig.lab import conditions, host, idle, ledger, links, process, removal, tcp
from dnsrig.lab.host import Host
from dnsrig.lab.ledger import Ledger
from dnsrig.lab.links import Place, _ends, selftest
from dnsrig.lab.process import Process
from dnsrig.machines import folders
from dnsrig.machines.folders import Archive
from dnsrig.rundir import HostSpec, LinkSpec

Tell = Callable[..., None]
END_LIMIT_S = 5.0


@dataclass
class Lab:
    """What one trial has here."""

    tell: Tell
    ledger: Ledger = field(default_factory=Ledger.open_new)
    hosts: dict[str, Host] = field(default_factory=dict)
    processes: dict[int, Process] = field(default_factory=dict)
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """What is let go at the end."""

    @property
    def folder(self) -> Path:
        """For the files of the trial here."""
        return paths.cache() / "machines" / "trials" / self.ledger.tag


_labs: list[Lab] = []


def begin(tell: Tell) -> None:
    """Before anything else here. ``tell`` says what programs write, and that they ended."""
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
    """Folders of trials whose process is gone."""
    trials, live = paths.cache() / "machines" / "trials", ledger.live()
    for folder in trials.iterdir() if trials.is_dir() else ():
        if folder.name not in live:
            shutil.rmtree(folder, ignore_errors=True)


def look() -> dict[str, Any]:
    """Where things lie here, and what the machine is."""
    return {
        "folder": str(_lab().folder),
        "cache": str(paths.cache()),
        "engine": str(paths.engine()),
        "cpus": sorted(os.sched_getaffinity(0)),
        "conditions": conditions.snapshot(),
    }


def stay_awake() -> None:
    """CPUs that have nothing to do may not sleep (``idle.py``)."""
    _lab().held.enter_context(idle.awake(True))


def moment() -> dict[str, Any]:
    return conditions.moment(_lab().folder, _lab().ledger.tag)


def make_host(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    lab, wanted = _lab(), HostSpec.model_validate(spec)
    made = lab.hosts[name] = host.make(lab.ledger, name, wanted)
    told = {"namespace": made.namespace, "cgroups": [str(folder) for folder in made.cgroups], "sysctls": made.sysctls}
    return {**told, "nic_address": made.nic_address, "nic_facts": made.nic_facts}


def join(name: str, there: dict[str, Any], neighbour: str, mtu_bytes: int) -> None:
    """The way from a host here to another one, by its interface."""
    here = _lab().hosts[name]
    _ends.set_up(here, _absent(there), mtu_bytes=mtu_bytes, neighbour=neighbour, interface=here.spec.nic)


def link(left: str, right: str, spec: dict[str, Any], number: int) -> None:
    """A plain link between two hosts here."""
    lab, wanted = _lab(), LinkSpec.model_validate(spec)
    ends = lab.hosts[left], lab.hosts[right]
    links.kinds()[wanted.kind].make(*ends, wanted, Place(lab.ledger, ends[0], number, wanted.seed))


def check_link(name: str, there: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return selftest.check(_lab().hosts[name], _absent(there), LinkSpec.model_validate(spec), 0.0)


def settle(name: str, neighbours: list[dict[str, Any]]) -> dict[str, Any]:
    return tcp.settle(_lab().hosts[name], [_absent(there) for there in neighbours])


def start(number: int, name: str, command: list[str], how: dict[str, Any], reads: bool) -> int:
    """Start a program on the host ``name``; it is known as ``number`` from then on. Returns its pid."""
    lab = _lab()
    started = process.start(
        Path(command[0]).name,
        lab.hosts[name],
        command,
        confined=Confinement.of_json(how["confined"]) if how.get("confined") else None,
        workdir=how.get("workdir"),
        environment=how.get("environment"),
        stamp_file=Path(how["stamp_file"]) if how.get("stamp_file") else None,
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
    with contextlib.suppress(BrokenPipeError):  # its end is told by itself
        stdin.write(text)
        stdin.flush()


def close_input(number: int) -> None:
    stdin = _lab().processes[number].popen.stdin
    if stdin is not None:
        with contextlib.suppress(OSError):
            stdin.close()


def go_first(number: int) -> bool:
    return _lab().processes[number].go_first()


def pids(name: str) -> list[int]:
    """The processes of a host."""
    return sorted(host.pids(_lab().hosts[name]))


def threads(of: list[int]) -> int:
    return sum(process.threads(pid) for pid in of)


def privileges(of: int) -> dict[str, Any] | None:
    found = process.privileges(of)
    return found.model_dump() if found else None


def make_folder(path: str) -> None:
    Path(path).mkdir(parents=True, exist_ok=True)


def text(path: str) -> str:
    """Of a file; empty where there is none."""
    return Path(path).read_text(errors="replace") if Path(path).exists() else ""


def pack(folder: str) -> dict[str, Any]:
    """A folder as an archive, to be fetched by `part`."""
    handle, name = tempfile.mkstemp(dir=_lab().folder, suffix=".tar")
    os.close(handle)
    packed = folders.pack(Path(folder), Path(name))
    return {"path": name, "size_bytes": packed.size_bytes, "sha256": packed.sha256}


def part(path: str, offset: int) -> str:
    return base64.b64encode(folders.part(Path(path), offset)).decode()


def forget(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def lacking(folders: list[str]) -> list[str]:
    """Of folders of the cache, named from there, those that this one has not."""
    return [folder for folder in folders if not (paths.cache() / folder).exists()]


def receive(name: str, offset: int, data: str) -> None:
    """A part of an archive that is on its way."""
    folders.add(_lab().folder / name, offset, base64.b64decode(data))


def install(name: str, size_bytes: int, sha256: str, folder: str) -> None:
    """What arrived becomes ``folder`` of the cache, or of the trial where it begins with /."""
    archive = Archive(_lab().folder / name, size_bytes, sha256)
    try:
        folders.install(archive, Path(folder) if folder.startswith("/") else paths.cache() / folder)
    finally:
        archive.path.unlink(missing_ok=True)


def _lab() -> Lab:
    return _labs[-1]


def _absent(told: dict[str, Any]) -> Host:
    """A host that is on another machine."""
    return Host(str(told["name"]), HostSpec.model_validate(told["spec"]), "")


def _read(lab: Lab, number: int, stream: str, lines: IO[str]) -> None:
    with contextlib.suppress(ValueError):  # closed under us
        for line in lines:
            lab.tell(process=number, stream=stream, line=line)


def _wait(lab: Lab, number: int, started: Process, readers: list[threading.Thread]) -> None:
    status = started.popen.wait()
    for reader in readers:
        reader.join(END_LIMIT_S)
    lab.tell(process=number, ended=status)
