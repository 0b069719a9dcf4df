"""Cycle: a zone is generated periodically, and a far secondary follows. Does each generation arrive before the next one
is made?

Every ``cycle_s`` seconds the primary loads a new zone file, which differs from the one before in ``changed_percent`` of
its records, and finds the differences itself. It sends NOTIFY to its secondary, which requests IXFR. The two servers
decide whether IXFR is answered by the whole zone, or replaced by AXFR: by size (BIND `max-ixfr-ratio`, NSD
`ixfr-size`), by the history that the primary kept, or because a transfer failed.

Two probes watch each generation, from a host near both servers. A generation is *published* when the primary first
answers with its serial or a later one, and *served* when the secondary does. A late secondary may *skip* a generation;
the probe then sees a later serial. Option ``generations``: number of generations. After the last one, the trial waits
until the secondary has it. Odd generations have the records of the next version of the dataset, even ones the records
of the first version, each with its own serial. So each generation differs from the one before in the same number of
records, and only two zones have to be made. Of your own zone, generation n is version n of ``dataset.next``, if that is
given.

A trial is `done` if the secondary gets the last generation, however late the others were, and a `timeout` if it never
does. It is `invalid` if the rig itself made a generation too late, because then the cycle was longer.
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

from dnsrig import datasets, parameters
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
OPTIONS: dict[str, Scalar] = {
    "cycle_s": 10.0,
    "generations": 5,
    "changed_percent": 12.0,
    "probe_rate_per_s": 200,
    "ready_limit_s": 900,
    "settle_s": 2.0,
    "drain_s": 0.3,
}
AHEAD_S = 1.0
"""Probes start this long before the primary loads a generation, so that they are ready when it publishes. A busy
machine took 0.8 s to start the two processes."""
RANGES = {"generations": (1, 100), "cycle_s": (2 * AHEAD_S, parameters.DAY_S)}
LATE_SHARE_MAX = 0.1
"""Largest lateness of a generation, as a share of the cycle; the cycle before it was longer by as much. Six trials with
a small zone were late by 0.03 % at most; a large zone takes longer to write and to load."""
HEAD_BYTES = 4096
"""Beginning of a zone file that contains the SOA record."""
SERIAL = re.compile(rb"(\sSOA\s+\S+\s+\S+\s+)\d+")
links = transfer.links


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    most = 100 * tld.CHANGED_MOST / tld.RECORDS_PER_DELEGATION
    if not 0 < float(options["changed_percent"]) <= most:
        raise UsageError(
            f"options.changed_percent = {options['changed_percent']} is invalid",
            hint=f"more than 0, at most {most:.0f}",
        )
    return transfer.hosts({"primaries": 1})


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["generations"] * options["cycle_s"])


def next_version(
    values: Mapping[str, Scalar], options: Mapping[str, Scalar]
) -> dict[str, Scalar] | list[dict[str, Scalar]]:
    """The dataset one version later, with the share of the records changed; of the user's own versions, one for each
    generation. `validate` refuses other datasets later."""
    following = datasets.next_version(values)
    if datasets.has_own_versions(values):
        found = [following]
        while len(found) < int(options["generations"]):
            found.append(datasets.next_version(found[-1]))
        return found
    if "delegations" in values:
        _, records = tld.size(values)
        following["records_changed"] = max(1, round(records * float(options["changed_percent"]) / 100))
    elif "changed_share" in values:
        following["changed_share"] = float(options["changed_percent"]) / 100
    return following


def validate(spec: TrialSpec) -> None:
    """Refuse a secondary that cannot follow, and a trial that ends before its last generation."""
    if spec.dataset.kind != "tld" and not datasets.are_own(spec.dataset.kind):
        raise UsageError(
            f"the next version of the dataset {spec.dataset.kind} differs only in its serial",
            hint='choose kind = "tld" or "files"',
        )
    if spec.dataset.zones != 1:
        raise UsageError("generations are of one zone", hint="give the file of one zone")
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
    context.drain()
    return concluded(generations, cycle_s=float(context.option("cycle_s")), limit_s=context.spec.limit_s)


def _make(context: TrialContext, deadline_s: float) -> dict[int, int]:
    """Make all generations when they are due. Return when the primary was told to load each (CLOCK_MONOTONIC, ns)."""
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
    """Wait for both probes of a generation. Return what they saw."""
    found = {}
    for host in ("primary", "secondary"):
        name = _name(host, number)
        left_s = max(0.0, deadline_s - time.monotonic())
        context.wait(context.instruments.started[name], limit_s=left_s + PROBE_GRACE_S)
        rows = context.directory / f"{name}.arrow"
        found[host] = _served(rows)
        # The record of the trial contains everything about it.
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
    """Result of a trial: `timeout` if a generation is missing, `invalid` if the rig was late. A late secondary is
    `done`."""
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
    """The serial of generation ``number``; 0: the zone at the beginning."""
    if datasets.has_own_versions(context.spec.dataset.parameters):
        return context.spec.versions[number].serial
    return context.spec.dataset.serial + number


def lay_out(context: TrialContext, name: str, number: int) -> None:
    """Write generation ``number`` beside the zones of the primary of host ``name``, for `ZoneChanges.load`."""
    versions, placement = context.workspace.versions, context.servers.placements[name]
    own = datasets.has_own_versions(context.spec.dataset.parameters)
    source = versions[number if own else number % 2]
    with as_user(source) as old, as_user(placement.dataset) as new:
        for zone in placement.zones:
            target = new / zone.file
            copy_with_serial(old / zone.file, target.with_name(target.name + NEXT), _serial(context, number))


def copy_with_serial(source: Path, target: Path, serial: int) -> None:
    """Copy a zone file with another serial."""
    with source.open("rb") as old, target.open("wb") as new:
        head, found = SERIAL.subn(rb"\g<1>%d" % serial, old.read(HEAD_BYTES), count=1)
        if not found:
            raise DnsrigError(f"{source} has no SOA record in its first {HEAD_BYTES} bytes")
        new.write(head)
        shutil.copyfileobj(old, new, 1 << 20)


@dataclass(frozen=True)
class Served:
    """When a server first answered with a serial or a later one, from `probe`."""

    seen_ns: int | None = None
    """None: not until the end."""
    last_unseen_ns: int | None = None
    serial: int | None = None


def _served(rows: Path) -> Served:
    """The row of `probe` for its single zone."""
    if not rows.exists() or not rows.stat().st_size:
        return Served()
    row = pl.read_ipc_stream(rows).row(0, named=True)
    return Served(row["seen_ns"], row["last_unseen_ns"], row["serial"] if row["seen_ns"] is not None else None)
