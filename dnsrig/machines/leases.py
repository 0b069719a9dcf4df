"""Leases: who uses this machine, and until when unless the lease is renewed, by CLOCK_MONOTONIC of the machine."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from dnsrig import cached, paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import conditions

LEASE_S = 30.0
RENEWAL_S = 5.0
"""How often a run renews its lease."""


@dataclass(frozen=True)
class Lease:
    name: str
    holder: str
    """Name of the run, for people."""
    boot_id: str | None
    until_s: float
    """CLOCK_MONOTONIC."""

    @property
    def is_over(self) -> bool:
        return self.boot_id != conditions.boot_id() or time.monotonic() > self.until_s


def take(lease: str, holder: str) -> str:
    """Take the machine for ``holder``; returns the holder that has it instead, or an empty string.

    A run that is resumed takes the machine from itself.
    """
    with cached.locked(_folder()):
        found = current()
        if found is not None and found.name != lease and found.holder != holder and not found.is_over:
            return found.holder
        write(_file(), lease, holder)
    return ""


def renew(lease: str, holder: str) -> None:
    """Renew a lease. Raises DnsrigError if somebody else has taken the machine meanwhile."""
    if other := take(lease, holder):
        raise DnsrigError(f"{other} has taken the machine", hint="wait until it ends, then continue with --resume")


def give_back(lease: str) -> None:
    with cached.locked(_folder()):
        if holds(lease):
            _file().unlink()


def holds(lease: str) -> bool:
    found = current()
    return found is not None and found.name == lease and not found.is_over


def current() -> Lease | None:
    return read(_file())


def _folder() -> Path:
    return paths.cache() / "machines"


def _file() -> Path:
    return _folder() / "lease.json"


def write(path: Path, name: str, holder: str) -> None:
    lease = Lease(name, holder, conditions.boot_id(), time.monotonic() + LEASE_S)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(lease)))
    fresh.rename(path)


def read(path: Path) -> Lease | None:
    try:
        return Lease(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
