"""Cycle: a zone is made anew every so many seconds, and a far secondary follows; does each generation arrive before the
next is made?

The primary is told to load a new zone file every ``cycle_s``, which differs in ``changed_percent`` of its records from
the one before, and finds the differences itself. It tells its secondary (NOTIFY), which asks for IXFR. Whether IXFR is
answered by the whole zone, or given up for AXFR, is for the two servers to decide: by size (BIND `max-ixfr-ratio`, NSD
`ixfr-size`), by how much history the primary kept, or because a transfer failed.

Two probes watch each generation, from a host that is near both: when the primary first answers with its serial or a
later one (it is *published*), and when the secondary does (it is *served*). A secondary that is late may go from one
generation to the next but one: it has *skipped* one, and the probe then sees a later serial. Option ``generations``:
how many are made; after the last one the trial waits until the secondary has it.

A trial is `done` when the secondary has the last generation, however late the others were, a `timeout` when it never
had it. It is `invalid` where the rig itself was late to make a generation: then the cycle was a longer one.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dnsrig import datasets
from dnsrig.confinement import as_user
from dnsrig.datasets import tld
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.procedures import HostRole, Result, transfer
from dnsrig.procedures.context import PROBE_GRACE_S, TrialContext
from dnsrig.procedures.context.zone_changes import NEXT
from dnsrig.rundir import Scalar, TrialSpec
from dnsrig.runs.replication import INSTRUMENT
from dnsrig.text import digits

DESCRIPTION = "a zone that is generated periodically: whether a far secondary has each generation before the next"
MAIN_METRIC = "cycle_share_percent"
NEXT_VERSION = True
OPTIONS: dict[str, int | float | str | bool] = {
    "cycle_s": 10.0,
    "generations": 5,
    "changed_percent": 12.0,
    "probe_rate_per_s": 200,
    "ready_limit_s": 900,
    "settle_s": 2.0,
    "drain_s": 0.3,
}
GENERATIONS_MAX = 100
AHEAD_S = 1.0
"""Probes begin so long before the primary is told, so that they are at work when it publishes: two processes, which a
busy machine took 0.8 s to start."""
LATE_SHARE_MAX = 0.1
"""Of the cycle: so much later than due a generation may be made, after which the cycle before was longer by as much.
Six trials with a small zone were late by 0.03 % at most; telling the primary and writing the next file of a large one
takes longer."""
HEAD_BYTES = 4096
"""The SOA record lies within so many from the beginning of a zone file."""
SERIAL = re.compile(rb"(\sSOA\s+\S+\s+\S+\s+)\d+")
links = transfer.links


def hosts(options: Mapping[str, int | float | str | bool]) -> dict[str, HostRole]:
    if not 1 <= int(options["generations"]) <= GENERATIONS_MAX:
        raise UsageError(
            f"options.generations = {options['generations']} is invalid", hint=f"a number from 1 to {GENERATIONS_MAX}"
        )
    if float(options["cycle_s"]) < 2 * AHEAD_S:
        raise UsageError(f"options.cycle_s = {options['cycle_s']} is invalid", hint=f"seconds, {2 * AHEAD_S:g} or more")
    most = 100 * tld.CHANGED_MOST / tld.RECORDS_PER_DELEGATION
    if not 0 < float(options["changed_percent"]) <= most:
        raise UsageError(
            f"options.changed_percent = {options['changed_percent']} is invalid",
            hint=f"more than 0, at most {most:.0f}",
        )
    return transfer.hosts({"primaries": 1})


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["generations"] * options["cycle_s"])


def next_version(values: Mapping[str, Scalar], options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The dataset one serial later, with its share of the records changed; other datasets are refused later, by
    `check`."""
    following = datasets.next_version(values)
    if "delegations" in values:
        _, records = tld.size(values)
        following["records_changed"] = max(1, round(records * float(options["changed_percent"]) / 100))
    return following


def check(spec: TrialSpec) -> None:
    """Refuse what cannot follow, and a trial that ends before its last generation is made."""
    if spec.dataset.kind != "tld":
        raise UsageError(
            f"the next version of the dataset {spec.dataset.kind} differs only in its serial",
            hint='choose kind = "tld"',
        )
    if not (spec.transfer.ixfr and spec.transfer.notify):
        raise UsageError(
            "a secondary follows generations by NOTIFY and IXFR",
            hint="set transfer.ixfr = true and transfer.notify = true",
        )
    if expected_s(spec.options) > spec.limit_s:
        raise UsageError(
            f"{spec.options['generations']} generations of {spec.options['cycle_s']:g} s do not fit within limit_s = {spec.limit_s:g} s",
            hint="raise limit_s, or make fewer generations",
        )


def checks(spec: TrialSpec) -> list[str]:
    return ["generations-published", "transfer-port"]


def measure(context: TrialContext) -> Result:
    ready_limit_s = float(context.option("ready_limit_s"))
    with context.phase("setup"):
        context.start_watch()
        context.start_ready("primary", limit_s=ready_limit_s)
        context.start_ready("secondary", limit_s=ready_limit_s)
    with context.phase("warmup"):
        # Servers that have just started still write zones down and finish connections.
        context.rest(float(context.option("settle_s")))
    with context.profiled(), context.phase("measure"):
        deadline_s = time.monotonic() + context.spec.limit_s
        made = _make(context, deadline_s)
        generations = [_ended(context, number, told_ns, deadline_s) for number, told_ns in made.items()]
        context.summaries[INSTRUMENT] = {"event": "summary", "generations": generations}
        context.servers.count_threads()
    with context.phase("drain"):
        time.sleep(float(context.option("drain_s")))
        context.servers.check()
    return concluded(generations, cycle_s=float(context.option("cycle_s")), limit_s=context.spec.limit_s)


def _make(context: TrialContext, deadline_s: float) -> dict[int, int]:
    """Make all generations, each when it is due; when the primary was told of each (CLOCK_MONOTONIC, ns)."""
    cycle_s, count, made = float(context.option("cycle_s")), int(context.option("generations")), {}
    lay_out(context, "primary", 1)
    begin_s = time.monotonic() + AHEAD_S
    for number in range(1, count + 1):
        due_s = begin_s + (number - 1) * cycle_s
        context.rest(due_s - AHEAD_S - time.monotonic())
        for host in ("primary", "secondary"):
            _watch(context, host, number, deadline_s)
        context.rest(due_s - time.monotonic())
        made[number] = time.monotonic_ns()
        context.changes.load("primary")
        if number < count:
            lay_out(context, "primary", number + 1)
    return made


def _name(host: str, number: int) -> str:
    return f"generation-{number}-{host}"


def _watch(context: TrialContext, host: str, number: int, deadline_s: float) -> None:
    name = _name(host, number)
    context.instruments.start_probe(
        name,
        host,
        limit_s=max(1.0, deadline_s - time.monotonic()),
        out=context.directory / f"{name}.arrow",
        serial=_serial(context, number),
    )


def _ended(context: TrialContext, number: int, told_ns: int, deadline_s: float) -> dict[str, Any]:
    """Wait for both probes of a generation; what they saw."""
    found = {}
    for host in ("primary", "secondary"):
        name = _name(host, number)
        left_s = max(0.0, deadline_s - time.monotonic())
        context.wait(context.instruments.started[name], limit_s=left_s + PROBE_GRACE_S)
        rows = context.directory / f"{name}.arrow"
        found[host] = _served(rows)
        # What there is to know of it stands in the record of the trial.
        rows.unlink(missing_ok=True)
        del context.instruments.started[name]
    published, served = found["primary"], found["secondary"]
    return {
        "serial": _serial(context, number),
        "told_ns": told_ns,
        "published_ns": published.seen_ns,
        "published_serial": published.serial,
        "served_ns": served.seen_ns,
        "served_last_unseen_ns": served.last_unseen_ns,
        "served_serial": served.serial,
    }


def concluded(generations: list[dict[str, Any]], *, cycle_s: float, limit_s: float) -> Result:
    """Late is a result of its own; at its limit is a trial of which a generation is still missing."""
    first_ns = generations[0]["told_ns"]
    late_s = max((each["told_ns"] - first_ns) / 1e9 - number * cycle_s for number, each in enumerate(generations))
    if late_s > LATE_SHARE_MAX * cycle_s:
        return Result(
            "invalid", f"a generation was made {digits(late_s)} s later than its cycle of {cycle_s:g} s wants"
        )
    for what, who in (("published", "the primary"), ("served", "the secondary")):
        if missing := [each["serial"] for each in generations if each[f"{what}_ns"] is None]:
            count = len(generations)
            return Result("timeout", f"{who} had {count - len(missing)} of {count} generations after {limit_s:g} s")
    return Result("done")


def _serial(context: TrialContext, number: int) -> int:
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
            copy_with_serial(old / zone.file, target.with_name(target.name + NEXT), _serial(context, number))


def copy_with_serial(source: Path, target: Path, serial: int) -> None:
    """A zone file with another serial."""
    with source.open("rb") as old, target.open("wb") as new:
        head, found = SERIAL.subn(rb"\g<1>%d" % serial, old.read(HEAD_BYTES), count=1)
        if not found:
            raise DnsrigError(f"{source} has no SOA record in its first {HEAD_BYTES} bytes")
        new.write(head)
        shutil.copyfileobj(old, new, 1 << 20)


@dataclass(frozen=True)
class Served:
    """When a server first answered with a serial or a later one, as `probe` saw it."""

    seen_ns: int | None = None
    """None: not until the end."""
    last_unseen_ns: int | None = None
    serial: int | None = None


def _served(rows: Path) -> Served:
    """What `probe` wrote of its one zone."""
    if not rows.exists() or not rows.stat().st_size:
        return Served()
    row = pl.read_ipc_stream(rows).row(0, named=True)
    return Served(row["seen_ns"], row["last_unseen_ns"], row["serial"] if row["seen_ns"] is not None else None)
