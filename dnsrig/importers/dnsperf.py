"""dnsperf (DNS-OARC): what it prints, as text or with ``-j`` (2.15 and later) as JSON lines.

Sources: its ``src/dnsperf.c``: `print_statistics`, `print_histogram`, `do_send` (the clock starts right before a query
is sent; a query that times out has no latency), and ``doc/dnsperf.1.in``.

What latencies there are of, the best first: ``-v`` prints each query; ``-O latency-histogram`` (2.11 and later, where
it was built with histograms) counts in buckets of 3 %, also for each interval with ``-O verbose-interval-stats``;
without either there are mean, least and largest.
"""

from __future__ import annotations

import calendar
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dnsrig.importers import MS, US, Asked, Bucket, Result, Stretch, ends, lines, number, seconds

FILES = "what it prints, as text or JSON; best with `-O latency-histogram -O verbose-interval-stats -S 1`, or with `-v`"
DEFAULT_TIMEOUT_S = 5.0

_VERSION = re.compile(r"^Version (\S+)$")
_COUNT = re.compile(r"^Queries (sent|completed|lost): +(\d+)")
_RUN_TIME = re.compile(r"^Run time \(s\): +([\d.]+)$")
_LATENCY = re.compile(r"^Average Latency \(s\): +([\d.]+)(?: \(min ([\d.]+), max ([\d.]+)\))?$")
_BUCKET = re.compile(r"^([\d.]+) - ([\d.]+): +(\d+)$")
_RCODE = re.compile(r"([A-Z]\w*) (\d+) \(")
_QUERY = re.compile(r"^> (\S+) .* (\d+\.\d{6})$")
_STATUS = "[Status] "
_OF_CONNECTIONS = "Connection Statistics:"


@dataclass
class _Block:
    """Statistics of an interval, or of the whole."""

    counts: dict[str, int] = field(default_factory=dict)
    run_time_s: float = 0.0
    buckets: list[Bucket] = field(default_factory=list)
    told: dict[str, float | None] = field(default_factory=dict)
    rcodes: dict[str, int] = field(default_factory=dict)


@dataclass
class _Seen:
    """The whole output, as text or JSON."""

    version: str = ""
    command: Sequence[str] = ()
    started: str = ""
    intervals: list[_Block] = field(default_factory=list)
    whole: _Block | None = None
    queries: Counter[int] = field(default_factory=Counter)
    """The latency of each, with ``-v``; in ns."""


def read(data: bytes, asked: Asked) -> Result:
    seen = _from_json(data) if data.lstrip().startswith(b"{") else _from_text(lines(data))
    if seen.whole is None:
        raise ValueError("there are no statistics at its end: was dnsperf interrupted?")
    return _result(seen, seen.whole)


def _from_text(text: Iterable[str]) -> _Seen:
    seen, block, connections = _Seen(), _Block(), False
    for line in map(str.strip, text):
        if line in ("Statistics:", "Interval Statistics:"):
            block, connections = _Block(), False
            if line == "Statistics:":
                seen.whole = block
            else:
                seen.intervals.append(block)
        elif line == _OF_CONNECTIONS:
            connections = True  # what follows is of connections, in the same words
        elif found := _VERSION.match(line):
            seen.version = found[1]
        elif line.startswith(_STATUS):
            _status(seen, line.removeprefix(_STATUS))
        elif found := _QUERY.match(line):
            seen.queries[seconds(found[2])] += 1
        elif not connections:
            _figure(block, line)
    return seen


def _status(seen: _Seen, said: str) -> None:
    name, _, value = said.partition(": ")
    if name == "Command line":
        seen.command = value.split()
    elif name == "Started at":
        seen.started = value


def _figure(block: _Block, line: str) -> None:
    if found := _COUNT.match(line):
        block.counts[found[1]] = number(found[2])
    elif found := _RUN_TIME.match(line):
        block.run_time_s = float(found[1])
    elif found := _LATENCY.match(line):
        values = zip(("mean", "min", "max"), found.groups())
        block.told = {name: float(seconds(value)) for name, value in values if value is not None}
    elif found := _BUCKET.match(line):
        block.buckets.append(_bucket(*found.groups()))
    elif line.startswith("Response codes:"):
        block.rcodes = {name: number(count) for name, count in _RCODE.findall(line)}


def _from_json(data: bytes) -> _Seen:
    """Warnings of time-outs stand between its lines where both went to one file."""
    seen = _Seen()
    for event in map(json.loads, (line for line in lines(data) if line.startswith("{"))):
        if "start" in event:
            start = event["start"]
            seen.version, seen.started = str(start["version"]), str(start.get("started", ""))
            seen.command = [str(word) for word in start["command_line"]]
        elif "statistics" in event:
            told = event["statistics"]
            block = _block(told)
            if told.get("interval"):
                seen.intervals.append(block)
            else:
                seen.whole = block
    return seen


def _block(told: Any) -> _Block:
    latency = told.get("latency", {})
    values = {name: latency.get(key) for name, key in (("mean", "avg"), ("min", "min"), ("max", "max"))}
    return _Block(
        counts={name: number(told[name]) for name in ("sent", "completed", "lost")},
        run_time_s=_run_time_s(told),
        buckets=[_bucket(*entry) for entry in latency.get("histogram", [])],
        told={name: float(seconds(value)) for name, value in values.items() if value is not None},
        rcodes={str(name): number(count) for name, count in told.get("rcodes", {}).items()},
    )


def _run_time_s(told: Any) -> float:
    """Written in whole seconds; answers and their rate say it exactly, but of an interval, whose rate is its own."""
    completed, qps = number(told["completed"]), float(told.get("qps", 0))
    return completed / qps if qps > 0 and not told.get("interval") else float(told["run_time"])


def _bucket(low: Any, high: Any, count: Any) -> Bucket:
    """In whole microseconds, of which the fraction was cut off."""
    return Bucket(seconds(low), seconds(high) + US - 1, number(count))


def _result(seen: _Seen, whole: _Block) -> Result:
    rate, timeout = _option(seen.command, "-Q"), _option(seen.command, "-t")
    stretches = list(_stretches(seen, whole))
    sent, lost = whole.counts.get("sent", 0), whole.counts.get("lost", 0)
    known = bool(whole.buckets or seen.queries)
    return Result(
        version=seen.version,
        basis="sending",
        command=" ".join(seen.command),
        model="rate" if rate else "closed",
        asked_qps=float(rate) if rate else None,
        started_ns=_started(seen.started),
        duration_s=whole.run_time_s,
        resolution_ns=US,
        sent=sent,
        answered=whole.counts.get("completed", 0),
        timeouts=lost,
        rcodes=whole.rcodes,
        timeout_ns=seconds(timeout or DEFAULT_TIMEOUT_S),
        told=whole.told if whole.counts.get("completed") else {},
        stretches=stretches,
        missing=[
            *([] if known else ["There is no distribution of latency: `-O latency-histogram` or `-v` prints one."]),
            *([f"{lost:,} queries without an answer are not among its latencies."] if lost else []),
            "A query that had to wait to be sent is not counted as late.",
        ],
    )


def _stretches(seen: _Seen, whole: _Block) -> Iterator[Stretch]:
    """The intervals where they have distributions, as `print_interval_stats` counts a query in that of its answer; the
    rest, whose answers came after the last of them, is the difference to the whole."""
    if seen.queries:
        exact = [Bucket(value, value + US - 1, count) for value, count in seen.queries.items()]
        yield _stretch(whole, 0.0, whole.run_time_s, exact)
        return
    if not (seen.intervals and any(block.buckets for block in seen.intervals)):
        yield _stretch(whole, 0.0, whole.run_time_s, whole.buckets)
        return
    rest, begun_s = Counter({bucket[:2]: bucket.queries for bucket in whole.buckets}), 0.0
    for block in seen.intervals:
        yield _stretch(block, begun_s, max(0.0, block.run_time_s - begun_s), block.buckets)
        begun_s = block.run_time_s
        rest.subtract({bucket[:2]: bucket.queries for bucket in block.buckets})
    counts = {
        name: max(0, count - sum(block.counts.get(name, 0) for block in seen.intervals))
        for name, count in whole.counts.items()
    }
    left = [Bucket(low, high, count) for (low, high), count in rest.items() if count > 0]
    if left or any(counts.values()):
        yield _stretch(_Block(counts=counts), begun_s, max(MS / 1e9, whole.run_time_s - begun_s), left)


def _stretch(block: _Block, start_s: float, duration_s: float, buckets: Iterable[Bucket]) -> Stretch:
    counts = block.counts
    tags = ends("sending", buckets)
    return Stretch(
        start_s, duration_s, counts.get("sent", 0), counts.get("completed", 0), counts.get("lost", 0), tags=tags
    )


def _option(command: Sequence[str], name: str) -> str | None:
    """The value of ``-X VALUE`` or ``-XVALUE``, where it is a number above zero."""
    for word, following in zip(command, [*command[1:], ""]):
        value = following if word == name else word.removeprefix(name) if word.startswith(name) else ""
        if re.fullmatch(r"[\d.]*[1-9][\d.]*", value):
            return value
    return None


def _started(text: str) -> int:
    """As ctime(3) writes it, of a local time whose zone nobody tells: taken as UTC. 0: not told."""
    try:
        return calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y")) * 1_000_000_000
    except ValueError:
        return 0
