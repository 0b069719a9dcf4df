"""Generations of a zone, one after the other, from the two versions that a trial has of its dataset.

Odd generations have the records of the next version, even ones those of the first, each with a serial of its own. So
each differs from the one before in as many records, and only two zones have to be made.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dnsrig.confinement import as_user
from dnsrig.errors import DnsrigError
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.zone_changes import NEXT

HEAD_BYTES = 4096
"""The SOA record lies within so many from the beginning of a zone file."""
SERIAL = re.compile(rb"(\sSOA\s+\S+\s+\S+\s+)\d+")


def serial(context: TrialContext, number: int) -> int:
    """That of generation ``number``; 0 is the zone that all begin with."""
    return context.spec.dataset.serial + number


def lay_out(context: TrialContext, name: str, number: int) -> None:
    """Write generation ``number`` beside the zones of the primary of host ``name``, for `ZoneChanges.load`."""
    workspace, placement = context.workspace, context.servers.placements[name]
    source = workspace.next_dataset if number % 2 else workspace.dataset
    assert source is not None
    with as_user(source) as old, as_user(placement.dataset) as new:
        for zone in placement.zones:
            target = new / zone.file
            copy_with_serial(old / zone.file, target.with_name(target.name + NEXT), serial(context, number))


def copy_with_serial(source: Path, target: Path, serial: int) -> None:
    """A zone file with another serial."""
    with source.open("rb") as old, target.open("wb") as new:
        head, found = SERIAL.subn(rb"\g<1>%d" % serial, old.read(HEAD_BYTES), count=1)
        if not found:
            raise DnsrigError(f"{source} has no SOA record in its first {HEAD_BYTES} bytes")
        new.write(head)
        shutil.copyfileobj(old, new, 1 << 20)


@dataclass(frozen=True)
class Seen:
    """When a server first answered with a serial or a later one, as `probe` saw it."""

    seen_ns: int | None = None
    """None: not until the end."""
    last_unseen_ns: int | None = None
    serial: int | None = None


def seen(rows: Path) -> Seen:
    """What `probe` wrote of its one zone."""
    if not rows.exists() or not rows.stat().st_size:
        return Seen()
    row = pl.read_ipc_stream(rows).row(0, named=True)
    return Seen(row["seen_ns"], row["last_unseen_ns"], row["serial"] if row["seen_ns"] is not None else None)
