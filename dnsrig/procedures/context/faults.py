"""Faults of the machine that end a trial, because it has no result after them."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dnsrig.errors import DnsrigError
from dnsrig.lab import ledger
from dnsrig.procedures.context.instruments import Instruments
from dnsrig.procedures.context.servers import Servers
from dnsrig.procedures.context.workspace import Workspace

LOOK_EVERY_S = 1.0
DISK_FREE_LEAST_BYTES = 16 << 20
"""More than instruments and servers usually write between two checks. Each trial begins with much more
(`dnsrig.experiment.runner.DISK_FREE_WANTED_BYTES`)."""
NO_SPACE = b"No space left on device"
"""Text of ENOSPC in strerror(3). Servers run with an English locale."""
LOG_END_BYTES = 1 << 16


@dataclass
class Faults:
    workspace: Workspace
    instruments: Instruments
    servers: Servers
    needed: Sequence[Path]
    """Files and folders that programs of the trial read until its end."""
    _last_s: float = 0.0

    def look(self) -> None:
        """Raise DnsrigError if there is a fault. It does nothing if it ran less than `LOOK_EVERY_S` ago."""
        if time.monotonic() - self._last_s >= LOOK_EVERY_S:
            self._last_s = time.monotonic()
            self._check_disks()
            self._check_needed()
            self._check_programs()

    def check(self) -> None:
        """Raise DnsrigError if there is, or was, a fault. The disk comes first, because other faults follow from it."""
        self._check_disks()
        self._check_logs()
        self._check_needed()
        self._check_programs()

    def _check_programs(self) -> None:
        for instrument in self.instruments.started.values():
            instrument.check()
        self.workspace.network.check_running()

    def _check_disks(self) -> None:
        in_memory = [ledger.MEMORY] if self.workspace.spec.storage == "memory" else []
        for folder in (self.workspace.directory, *in_memory):
            check_disk(folder)

    def _check_logs(self) -> None:
        for name in self.servers.placements:
            for log in (self.workspace.directory / "servers" / name).glob("*.log"):
                if NO_SPACE in _end(log):
                    raise full_disk(self.workspace.directory, f"the server on host {name} could not write")

    def _check_needed(self) -> None:
        for path in self.needed:
            if not path.exists():
                raise DnsrigError(
                    f"{path}, which this trial reads, was removed while it ran",
                    hint="the results so far are kept; start a new run, which fills the cache again",
                )


@contextlib.contextmanager
def full_disk_named(folder: Path) -> Iterator[None]:
    """Replace an error inside by an error about a full disk of ``folder``, if the disk is full."""
    try:
        yield
    except Exception:
        check_disk(folder)
        raise


def check_disk(folder: Path) -> None:
    """Raise DnsrigError if the disk of ``folder`` is full."""
    if (free := shutil.disk_usage(folder).free) < DISK_FREE_LEAST_BYTES:
        raise full_disk(folder, f"{free / 1e6:,.1f} MB are free")


def full_disk(folder: Path, how: str) -> DnsrigError:
    where = folder.resolve()
    mounted = next(path for path in (where, *where.parents) if path.is_mount())
    return DnsrigError(
        f"the disk is full: {how} on {mounted}, where {folder} lies",
        hint="free some space; a run goes on with --resume",
    )


def _end(log: Path) -> bytes:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_END_BYTES))
        return file.read()
