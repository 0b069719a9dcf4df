"""Each trial as a trace for Perfetto (https://ui.perfetto.dev): what happened when, in one picture.

From top to bottom: the phases, what the log of the server under test tells, transfers, zones served, what became of
queries, latencies, links, and every series that `watch` sampled, by host and source. CPU stacks of the server, where
they were sampled, are its process. Rows that lie before the damage of a damaged file are there.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from dnsrig.report.exports._perfetto import Trace
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

PERCENTS = {"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "max": 100}
"""Name -> percentile of the latencies of an interval."""
NOT_COUNTED = ("start_ns", "duration_ns", "time_ns", "direction")
_UNIT = re.compile(r"_(bytes|us|ms|ns|s|percent|per_s)(_max)?$")


def write(run: Run, out: Path) -> list[Path]:
    paths = []
    for trial in run.as_far_as_whole().trials:
        path = out / f"{trial.key.variant}-{trial.key.repeat}.pftrace"
        pid = trial.server.pid if trial.server else 0
        with path.open("wb") as file:
            trace = Trace(file, trial.anchors, pid)
            for part in PARTS:
                with run.failures.isolate("export", f"perfetto {part.__name__.strip('_')}"):
                    part(trace, trial)
        paths.append(path)
    return paths


def _phases(trace: Trace, trial: Trial) -> None:
    track = trace.track("phases")
    for phase in trial.record.phases:
        trace.slice(track, phase.name, phase.start.monotonic_ns, phase.end.monotonic_ns)
    started = trace.track("start of servers")
    for host, server in trial.record.servers.items():
        trace.instant(started, f"{host}: {server.server.label}", server.exec_ns)


def _log(trace: Trace, trial: Trial) -> None:
    """By the wall clock of the log, as exact as it is."""
    rows = trial.log_events.drop_nulls()
    if not rows.is_empty() and trial.anchors:
        track = trace.track(f"log of {trial.subject}")
        for kind, realtime_ns in rows.iter_rows():
            trace.instant(track, kind, trial.monotonic_ns(realtime_ns))


def _transfers(trace: Trace, trial: Trial) -> None:
    """Transfers; those that overlap in time get tracks of their own, as few as are needed."""
    rows = trial.transfers.filter(pl.col("asked_ns") > 0).sort("asked_ns", maintain_order=True)
    parent, free = None, list[tuple[int, int]]()
    for row in rows.iter_rows(named=True):
        parent = trace.track("transfers") if parent is None else parent
        # A time of 0: it never came to that.
        start_ns, end_ns = row["asked_ns"], max(row["asked_ns"], row["first_ns"], row["last_ns"])
        idle = bool(free) and free[0][0] <= start_ns
        track = heapq.heappop(free)[1] if idle else trace.track("transfers", parent)
        heapq.heappush(free, (end_ns, track))
        told = ("outcome", "asked", "answered", "connection", "attempt", "bytes", "messages", "records")
        trace.slice(track, row["zone"], start_ns, end_ns, {name: row[name] for name in told if row[name] is not None})


def _zones(trace: Trace, trial: Trial) -> None:
    seen = trial.zones["seen_ns"].drop_nulls().sort()
    if not seen.is_empty():
        track = trace.counter("zones seen by probe", "zones")
        for number, time_ns in enumerate(seen, 1):
            trace.value(track, time_ns, number)


def _queries(trace: Trace, trial: Trial) -> None:
    """Counts of an interval stand from its start to its end, where the last one falls to zero."""
    rows = trial.load_intervals
    if not rows.is_empty():
        end = rows.tail(1).select(pl.col("start_ns") + pl.col("duration_ns")).item()
        _columns(trace, "queries, of each interval", rows, "start_ns", end_ns=end)


def _latencies(trace: Trace, trial: Trial) -> None:
    """From the moment at which each query was due, of those due in an interval; of tools that count from there, from
    that at which it was sent."""
    intervals = trial.latency.intervals(trial.latency.result) if trial.latency is not None else []
    if not intervals:
        return
    parent = trace.track("latency, of each interval")
    tracks = {name: trace.counter(f"{name} (ms)", "ms", parent) for name in PERCENTS}
    for interval in intervals:
        at_ns = trial.load.start_ns + round(1e9 * interval.offset_s)
        for track, value_ns in zip(tracks.values(), interval.histogram.percentiles(PERCENTS.values())):
            trace.value(track, at_ns, value_ns / 1e6)


def _links(trace: Trace, trial: Trial) -> None:
    for name, rows in trial.links().items():
        for (direction,), part in rows.group_by("direction", maintain_order=True):
            _columns(trace, f"link {name}, {direction}", part, "time_ns")


def _samples(trace: Trace, trial: Trial) -> None:
    """By host, then by source, in the order of their names."""
    hosts: dict[str, int] = {}
    sources: dict[tuple[str, str], int] = {}
    rows = trial.samples.sort("host", "source", "metric", "time_ns", maintain_order=True)
    for (host, source, metric), part in rows.group_by("host", "source", "metric", maintain_order=True):
        if host not in hosts:
            hosts[host] = trace.track(f"host {host}")
        if (host, source) not in sources:
            sources[host, source] = trace.track(source, hosts[host])
        track = trace.counter(metric, _unit(metric), sources[host, source])
        for time_ns, value in part.select("time_ns", "value").drop_nulls().iter_rows():
            trace.value(track, time_ns, value)


def _stacks(trace: Trace, trial: Trial) -> None:
    for time_ns, stack in trial.timed_stacks.drop_nulls().sort("time_ns", maintain_order=True).iter_rows():
        trace.stack(time_ns, tuple(stack.split(";")))


def _columns(trace: Trace, name: str, rows: pl.DataFrame, time: str, end_ns: int | None = None) -> None:
    """A counter a column below one track; zero from ``end_ns`` on."""
    parent = trace.track(name)
    for column in rows.columns:
        if column not in NOT_COUNTED:
            track = trace.counter(column, _unit(column), parent)
            for time_ns, value in _known(rows, time, column):
                trace.value(track, time_ns, value)
            if end_ns is not None:
                trace.value(track, end_ns, 0)


def _known(rows: pl.DataFrame, time: str, column: str) -> Iterator[tuple[int, float]]:
    return rows.select(time, column).drop_nulls().iter_rows()


def _unit(name: str) -> str:
    """What a name ends in."""
    found = _UNIT.search(name)
    return found[1] if found else ""


PARTS: tuple[Callable[[Trace, Trial], None], ...] = (
    *(_phases, _log, _transfers, _zones, _queries, _latencies, _links, _samples, _stacks),
)
