"""Who made what: one locked file a trial under /run/dnsrig.

A trial takes a tag, holds an exclusive flock on ``/run/dnsrig/<tag>.json`` while it lives, and writes
there what it is going to make *before* making it. The kernel drops the lock when the trial dies, however it dies, so
an unlocked ledger is a dead trial's, and what it lists may be removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dnsrig.errors import DnsrigError

FOLDER = Path("/run/dnsrig")
PREFIX = "dnsrig-"
MEMORY = Path("/dev/shm")
"""Where folders in memory lie: a tmpfs that every Linux has (POSIX shared memory, shm_overview(7))."""
TAG_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
TAG_LENGTH = 5
TAG_START = "DNSRIG_TAG_START"
"""Environment variable: the first letters of each tag that is taken. They distinguish trials that run side by
side."""


@dataclass
class Ledger:
    """What one trial made: names of network namespaces, folders of cgroups, folders in memory; and interfaces of the
    machine that it took."""

    path: Path
    handle: int
    network_namespaces: list[str] = field(default_factory=list)
    cgroups: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    nics: list[dict[str, Any]] = field(default_factory=list)
    """Each as it was before, with the namespace that it was moved into."""

    @property
    def tag(self) -> str:
        return self.path.stem

    @classmethod
    def open_new(cls) -> Ledger:
        """Take a tag nobody has. Needs root."""
        try:
            FOLDER.mkdir(mode=0o755, exist_ok=True)
            start = os.environ.get(TAG_START, "")
            while True:
                tag = start + "".join(secrets.choice(TAG_LETTERS) for _ in range(TAG_LENGTH - len(start)))
                fresh, path = FOLDER / f"{tag}.new", FOLDER / f"{tag}.json"
                handle = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                fcntl.flock(handle, fcntl.LOCK_EX)
                try:
                    # It appears locked, so nobody can take it for a dead trial's.
                    os.link(fresh, path)
                    return cls(path, handle)
                except FileExistsError:
                    os.close(handle)
                finally:
                    fresh.unlink()
        except PermissionError as error:
            raise DnsrigError(
                "creating hosts (network namespaces) needs root", hint="run it again with sudo"
            ) from error

    def add(
        self, *, network_namespace: str = "", cgroup: str = "", folder: str = "", nic: dict[str, Any] | None = None
    ) -> None:
        """Note what is about to be made."""
        if network_namespace:
            self.network_namespaces.append(network_namespace)
        if cgroup:
            self.cgroups.append(cgroup)
        if folder:
            self.folders.append(folder)
        if nic is not None:
            self.nics.append(nic)
        self._write()

    def _write(self) -> None:
        content = {
            "pid": os.getpid(),
            "network_namespaces": self.network_namespaces,
            "cgroups": self.cgroups,
            "folders": self.folders,
            "nics": self.nics,
        }
        data = json.dumps(content).encode()
        os.pwrite(self.handle, data, 0)
        os.ftruncate(self.handle, len(data))

    def close(self) -> None:
        """Everything listed is gone: forget it."""
        self.path.unlink(missing_ok=True)
        os.close(self.handle)


def live() -> list[str]:
    """Tags of trials that are running now."""
    return [path.stem for path in _ledgers() if _is_locked(path)]


def dead() -> Iterator[Ledger]:
    """Ledgers of trials that died, locked by us while we look at each; not those that this user may not write."""
    for path in _ledgers():
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        yield _read(path, handle)


def dead_of_others() -> list[str]:
    """Tags of trials that died, of which this user may remove nothing."""
    return [path.stem for path in _ledgers() if not os.access(path, os.W_OK) and not _is_locked(path)]


def _ledgers() -> list[Path]:
    return sorted(FOLDER.glob("*.json")) if FOLDER.is_dir() else []


def _is_locked(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


def _read(path: Path, handle: int) -> Ledger:
    """A ledger as its dead trial left it; one cut short in writing lists nothing."""
    try:
        content = json.loads(os.pread(handle, 1 << 20, 0))
        namespaces = [n for n in content["network_namespaces"] if n.startswith(PREFIX)]
        folders = [
            f for f in content.get("folders", []) if Path(f).parent == MEMORY and Path(f).name.startswith(PREFIX)
        ]
        nics = [nic for nic in content.get("nics", []) if nic["namespace"] in namespaces]
        return Ledger(path, handle, namespaces, list(content["cgroups"]), folders, nics)
    except (ValueError, KeyError, TypeError):
        return Ledger(path, handle)
