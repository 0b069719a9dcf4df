"""A lease: who uses a machine, and until when unless it is renewed. By the machine's own clock, which never steps."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from dnsrig.lab import conditions

LEASE_S = 30.0
RENEWAL_S = 5.0
"""How often a run that lives renews it."""


@dataclass(frozen=True)
class Lease:
    name: str
    holder: str
    """For people."""
    boot_id: str | None
    until_s: float
    """CLOCK_MONOTONIC."""

    @property
    def is_over(self) -> bool:
        return self.boot_id != conditions.boot_id() or time.monotonic() > self.until_s


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
