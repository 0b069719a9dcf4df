"""A cgroup a host, on machines with cgroup v2, v1 or both (hybrid).

A host's cgroup is one folder in each hierarchy that has something to tell: in a v2 tree CPU time, PSI and
``cgroup.kill``; in v1 trees ``memory`` and ``cpuacct`` where v2 does not have them. ``cpuset`` keeps the host's
programs on its CPUs: some choose others for themselves, as Knot DNS, which ties its UDP threads to CPUs by number.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dnsrig.errors import DnsrigError

PARENT = "dnsrig"
WRITABLE = "a container needs its own writable cgroup tree, as with --privileged; `mount -o remount,rw` does it where that is allowed"
"""What there is to do about a tree that cannot be written."""
MAKE_ATTEMPTS = 5
REMOVE_LIMIT_S = 5.0
CPUS, MEMORY_NODES = "cpuset.cpus", "cpuset.mems"


@dataclass(frozen=True)
class Hierarchy:
    """One mounted cgroup tree. ``controllers`` is empty for v2."""

    mount: Path
    version: int
    controllers: tuple[str, ...] = ()


def hierarchies(mounts: str | None = None) -> list[Hierarchy]:
    """The trees worth using, from the text of /proc/self/mounts: v2, and v1 memory, cpuacct and cpuset."""
    found = []
    for line in (mounts if mounts is not None else Path("/proc/self/mounts").read_text()).splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found.append(Hierarchy(Path(mount), 2))
        elif kind == "cgroup":
            useful = tuple(c for c in options.split(",") if c in ("memory", "cpuacct", "cpuset"))
            if useful:
                found.append(Hierarchy(Path(mount), 1, useful))
    return found


def folders(tag: str, host: str, trees: list[Hierarchy]) -> list[Path]:
    return [tree.mount / PARENT / tag / host for tree in trees]


def make(folder: Path, cpus: Sequence[int] = ()) -> None:
    """Make one folder of a host, whose programs stay on ``cpus``, asking v2 for the controllers that we use.

    Another trial may remove the empty parent between two steps: then it is made again.
    """
    for attempt in range(MAKE_ATTEMPTS):
        try:
            for level in (folder.parent.parent, folder.parent, folder):
                level.mkdir(exist_ok=True)
                if level != folder:
                    _enable_controllers(level)
                _confine(level, cpus if level == folder else ())
            return
        except FileNotFoundError:
            if attempt == MAKE_ATTEMPTS - 1:
                raise
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            raise DnsrigError(f"the cgroup {folder} cannot be created: {error.strerror}", hint=WRITABLE) from error


def _enable_controllers(folder: Path) -> None:
    """Best effort, in our own folders only: what the machine's root does not pass on, v2 refuses; v1 may have it."""
    control = folder / "cgroup.subtree_control"
    if not control.exists():
        return
    for controller in ("memory", "cpu", "io", "cpuset"):
        with contextlib.suppress(OSError):
            control.write_text(f"+{controller}")


def _confine(folder: Path, cpus: Sequence[int]) -> None:
    """Give ``folder`` these CPUs, or its parent's; a new folder of v1 has no CPUs, and takes no process (cpuset(7))."""
    if not (folder / CPUS).exists():
        return
    for name, chosen in ((MEMORY_NODES, ""), (CPUS, ",".join(map(str, cpus)))):
        text = chosen or (folder.parent / name).read_text().strip()
        if text and (chosen or not (folder / name).read_text().strip()):
            (folder / name).write_text(text)


def processes(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    except (FileNotFoundError, OSError):
        return []


def kill(folder: Path) -> None:
    """End every process in ``folder``: only those that were started in it."""
    with contextlib.suppress(OSError):
        (folder / "cgroup.kill").write_text("1")
    for pid in processes(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remove(folder: Path) -> bool:
    """Remove a host's folder and its parents when these are empty. False if it would not go in time."""
    deadline = time.monotonic() + REMOVE_LIMIT_S
    while folder.exists():
        try:
            folder.rmdir()
        except FileNotFoundError:
            break
        except OSError:
            if time.monotonic() > deadline:
                return False
            kill(folder)
            time.sleep(0.02)
    for parent in (folder.parent, folder.parent.parent):
        with contextlib.suppress(OSError):
            parent.rmdir()
    return True
