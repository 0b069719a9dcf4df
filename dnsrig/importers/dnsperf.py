"""dnsperf (DNS-OARC): what it prints, as text or with ``-j`` (2.15 and later) as JSON lines.

Sources: its ``src/dnsperf.c``: `print_statistics`, `print_histogram`, `do_send` (the clock starts right before a query
is sent; a query that times out has no latency), and ``doc/dnsperf.1.in``. Builds with the patch of
kubernetes/perf-tests (``dns/image/histogram.patch``) print ``#histogram MS COUNT``: bins of a millisecond, of which the
last has what took longer and the queries that timed out.

What latencies there are of, the best first: ``-v`` prints each query; ``-O latency-histogram`` (2.11 and later, where
it was built with histograms) counts in buckets of 3 %, also for each interval with ``-O verbose-interval-stats``;
without any there are mean, least and largest.
"""

from __future__ import annotations

import calendar
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dnsrig import foreign
from dnsrig.importers import (
    LONGEST_QUOTED,
    MS,
    US,
    Asked,
    Bucket,
    NotUnderstood,
    Result,
    Stretch,
    ends,
    lines,
    number,
    of_all,
    seconds,
    unanswered,
)

FILES = "what it prints, as text or JSON; best with `-O latency-histogram -O verbose-interval-stats -S 1`, or with `-v`"
DEFAULT_TIMEOUT_S = 5.0

_VERSION = re.compile(r"^(?:Nominum )?Version (\S+)$")
_COUNT = re.compile(r"^(?:Queries|Updates) (sent|completed|lost|interrupted): +(\d+)")
_UNEXPECTED = re.compile(r"^Unexpected IDs: +(\d+)")
_RUN_TIME = re.compile(r"^Run time \(s\): +([\d.]+)$")
_LATENCY = re.compile(r"^Average Latency \(s\): +([\d.]+)(?: \(min ([\d.]+), max ([\d.]+)\))?$")
_BUCKET = re.compile(r"^([\d.]+) - ([\d.]+): +(\d+)$")
_RCODE = re.compile(r"([A-Z]\w*) (\d+) \(")
_QUERY = re.compile(r"^> (\S+) .* (\d+\.\d{6})$")
_BIN = re.compile(r"^#histogram (\d+) (\d+)$")
_LAST_BIN_MS = 4999
"""Of ``#histogram``: ``MAX_RTT_HISTOGRAM_MS`` less one."""
_STATUS = "[Status] "
_OF_CONNECTIONS = "Connection Statistics:"
_WARNING = "Warning: "
_START = ("version", "command_line", "started")
_STATISTICS = ("sent", "completed", "lost", "interrupted", "run_time", "qps", "rcodes", "latency", "interval")
_LATENCIES = ("avg", "min", "max", "stddev", "histogram")
"""Fields of JSON."""
_LEFT_OUT = re.compile(
    r"^(DNS Performance Testing Tool|\[Timeout\] .*|> [TI] .*|\d+\.\d{6}: [\d.]+|Latency histogram"
    r"|(Queries per second|Updates per second|Average packet size|Latency StdDev \(s\)|Latency bucket \(s\)): .*"
    r"|(Connection attempts|Reconnections|TLS sessions resumed|HTTP/2 return codes): .*|DNS-over-HTTPS statistics:)$"
)
"""Lines without a figure that the others do not have, or of connections."""


@dataclass
class _Block:
    """Statistics of an interval, or of the whole."""

    counts: dict[str, int] = field(default_factory=dict)
    run_time_s: float = 0.0
    buckets: list[Bucket] = field(default_factory=list)
    bins: dict[int, int] = field(default_factory=dict)
    """Whole milliseconds -> queries, of `_BIN`."""
    told: dict[str, float | None] = field(default_factory=dict)
    rcodes: dict[str, int] = field(default_factory=dict)
    unexpected: int = 0

    @property
    def lost(self) -> int:
        return self.counts.get("lost", 0)

    @property
    def completed(self) -> int:
        return self.counts.get("completed", 0)

    @property
    def interrupted(self) -> int:
        """Number of queries that were under way when dnsperf ended."""
        return self.counts.get("interrupted", 0)


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
    warnings: int = 0
    first_warning: str = ""
    unknown: NotUnderstood = field(default_factory=lambda: NotUnderstood("line"))


def read(data: bytes, asked: Asked) -> Result:
    seen = _from_json(data) if data.lstrip().startswith(b"{") else _from_text(lines(data))
    if seen.whole is None:
        raise ValueError("there are no statistics at its end: was dnsperf interrupted?")
    return _result(seen, seen.whole, asked)


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
        elif line.startswith(_WARNING):
            seen.warnings += 1
            seen.first_warning = seen.first_warning or line.removeprefix(_WARNING)[:LONGEST_QUOTED]
        elif not (_figure(_Block() if connections else block, line) or not line or _LEFT_OUT.match(line)):
            seen.unknown.add(line)
    return seen


def _status(seen: _Seen, said: str) -> None:
    name, _, value = said.partition(": ")
    if name == "Command line":
        seen.command = value.split()
    elif name == "Started at":
        seen.started = value


def _figure(block: _Block, line: str) -> bool:
    """Whether ``line`` is one of `print_statistics`."""
    if found := _COUNT.match(line):
        block.counts[found[1]] = number(found[2])
    elif found := _RUN_TIME.match(line):
        block.run_time_s = float(found[1])
    elif found := _LATENCY.match(line):
        values = zip(("mean", "min", "max"), found.groups())
        block.told = {name: float(seconds(value)) for name, value in values if value is not None}
    elif found := _BUCKET.match(line):
        block.buckets.append(_bucket(*found.groups()))
    elif found := _BIN.match(line):
        block.bins[number(found[1])] = number(found[2])
    elif found := _UNEXPECTED.match(line):
        block.unexpected = number(found[1])
    elif line.startswith("Response codes:"):
        block.rcodes = {name: number(count) for name, count in _RCODE.findall(line)}
    else:
        return False
    return True


def _from_json(data: bytes) -> _Seen:
    """Warnings of time-outs stand between its lines where both went to one file."""
    seen = _Seen(unknown=NotUnderstood("field"))
    for event in map(foreign.json_value, (line for line in lines(data) if line.startswith("{"))):
        seen.unknown.fields(event, ("start", "statistics", "rate"))
        if "start" in event:
            start = event["start"]
            seen.unknown.fields(start, _START, "start.")
            seen.version, seen.started = str(start["version"]), str(start.get("started", ""))
            seen.command = [str(word) for word in start["command_line"]]
        elif "statistics" in event:
            told = event["statistics"]
            seen.unknown.fields(told, _STATISTICS, "statistics.")
            seen.unknown.fields(told.get("latency", {}), _LATENCIES, "statistics.latency.")
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
        counts={name: number(told[name]) for name in ("sent", "completed", "lost")}
        | {"interrupted": number(told.get("interrupted", 0))},
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


def _result(seen: _Seen, whole: _Block, asked: Asked) -> Result:
    rate, timeout = _option(seen.command, "-Q"), _option(seen.command, "-t")
    timeout_ns = seconds(timeout) if timeout else asked.timeout_ns or seconds(DEFAULT_TIMEOUT_S)
    known = bool(whole.buckets or whole.bins or seen.queries or not whole.completed)
    return Result(
        version=seen.version,
        basis="sending",
        command=" ".join(seen.command),
        model="rate" if rate else "closed",
        asked_qps=float(rate) if rate else None,
        started_ns=_started(seen.started),
        duration_s=whole.run_time_s,
        resolution_ns=MS if whole.bins and not (whole.buckets or seen.queries) else US,
        sent=whole.counts.get("sent", 0),
        answered=whole.completed,
        timeouts=whole.lost,
        rcodes=whole.rcodes,
        timeout_ns=timeout_ns,
        told={} if whole.interrupted else of_all(whole.told, whole.completed, whole.lost, timeout_ns),
        stretches=list(_stretches(seen, whole, timeout_ns)) if known else [_stretch(whole, 0.0, whole.run_time_s, [])],
        missing=[
            *([] if known else ["There is no distribution of latency: `-O latency-histogram` or `-v` prints one."]),
            *([f"{whole.unexpected:,} answers had an unexpected id: they may be late."] if whole.unexpected else []),
            *([f"Warnings of dnsperf: {seen.warnings:,}, first {seen.first_warning!r}."] if seen.warnings else []),
            *seen.unknown.sentences,
            "A query that had to wait to be sent is not counted as late.",
        ],
    )


def _stretches(seen: _Seen, whole: _Block, timeout_ns: int) -> Iterator[Stretch]:
    """The intervals that have distributions: `print_interval_stats` counts a query in the interval of its answer. The
    rest, whose answers came after the last interval, is the difference to the whole."""
    if seen.queries or whole.bins or not any(block.buckets for block in seen.intervals):
        if seen.queries:
            found = [Bucket(value, value + US - 1, count) for value, count in seen.queries.items()]
        else:
            found = whole.buckets or list(_of_bins(whole, timeout_ns))
        yield _stretch(whole, 0.0, whole.run_time_s, [*found, *_without_answer(whole, timeout_ns)])
        return
    rest, begun_s = Counter({bucket[:2]: bucket.queries for bucket in whole.buckets}), 0.0
    for block in seen.intervals:
        buckets = [*block.buckets, *_without_answer(block, timeout_ns)]
        yield _stretch(block, begun_s, max(0.0, block.run_time_s - begun_s), buckets)
        begun_s = block.run_time_s
        rest.subtract({bucket[:2]: bucket.queries for bucket in block.buckets})
    counts = {
        name: max(0, count - sum(block.counts.get(name, 0) for block in seen.intervals))
        for name, count in whole.counts.items()
    }
    last = _Block(counts=counts)
    left = [Bucket(low, high, count) for (low, high), count in rest.items() if count > 0]
    if left or any(counts.values()):
        buckets = [*left, *_without_answer(last, timeout_ns)]
        yield _stretch(last, begun_s, max(MS / 1e9, whole.run_time_s - begun_s), buckets)


def _of_bins(block: _Block, timeout_ns: int) -> Iterator[Bucket]:
    """The answered queries of ``#histogram``: those that timed out are in its last bin."""
    for whole_ms, count in block.bins.items():
        low, high = whole_ms * MS, (whole_ms + 1) * MS - 1
        if whole_ms == _LAST_BIN_MS:
            yield Bucket(low, max(high, timeout_ns), max(0, count - block.lost))
        else:
            yield Bucket(low, high, count)


def _without_answer(block: _Block, timeout_ns: int) -> list[Bucket]:
    """Queries that timed out; and those that the end of dnsperf interrupted, which took any time up to the timeout."""
    return [*unanswered(block.lost, timeout_ns), Bucket(0, timeout_ns, block.interrupted)]


def _stretch(block: _Block, start_s: float, duration_s: float, buckets: Iterable[Bucket]) -> Stretch:
    tags = ends("sending", buckets)
    return Stretch(start_s, duration_s, block.counts.get("sent", 0), block.completed, block.lost, tags=tags)


def _option(command: Sequence[str], name: str) -> str | None:
    """The value of ``-X VALUE`` or ``-XVALUE``, where it is a number above zero."""
    for word, following in zip(command, [*command[1:], ""]):
        value = following if word == name else word.removeprefix(name) if word.startswith(name) else ""
        if re.fullmatch(r"[\d.]*[1-9][\d.]*", value):
            return value
    return None


def _started(text: str) -> int:
    """Nanoseconds of a time as ctime(3) writes it: a local time without its zone, taken as UTC. 0 if there is none."""
    try:
        return calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y")) * 1_000_000_000
    except ValueError:
        return 0
