"""The mean looks harmless, but some queries waited ten times as long.

A mean, and even more a median, does not show one slow answer in a thousand; at 100,000 queries a second these are a
hundred users a second. Only the slowest percentiles show them. A percentile is reliable only if at least ten queries
exceed it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsrig.runs.latency import Histogram
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 55
OF_IMPORTED = True
GROUP = "statistics"
OUTCOMES = JUDGED
TITLE = "the mean hides a tail"
SOURCE = "S2: P. Spacek, in search of latency: means lie, percentiles above 95 matter (2023)"
PERCENTILES = (99.9, 99.99)
FEWEST_BEYOND = 10
"""Least number of queries beyond a percentile: with fewer, it depends on luck."""
FEWEST_QUERIES = 10_000
"""With this number of queries, `FEWEST_BEYOND` exceed the first percentile."""
LARGEST_RATIO = 10
"""Ratio of a percentile to mean and median above which the mean hides it. A log-normal latency reaches it at 99.99 %
with a sigma of 0.68: its slowest sixth is then twice as slow as its median."""
SMALLEST_TAIL_NS = 1_000_000
"""Shortest latency of a tail. Shorter ones come from the scheduling of a machine that is not set up for real time, and
no user of a resolver notices them."""


@dataclass(frozen=True)
class Tail:
    percent: float
    """The hidden percentile: the first one that is examined and hidden."""
    at_ns: int
    """Its value."""
    from_ns: float
    """Queries that waited at least this long are in the tail."""
    beyond: int
    """Queries in the tail."""
    share: float
    """Share of queries in the tail."""
    time_share: float
    """Share of the total waiting time that belongs to queries in the tail."""


def after(trial: Trial) -> Conclusion | None:
    if not trial.load.has_latencies:
        return None
    whole = trial.latency.total(trial.latency.result) if trial.latency else None
    if whole is None or not whole.total:
        return cannot_tell("There is no distribution of latency, or it is empty.")
    if whole.total < FEWEST_QUERIES:
        return cannot_tell(f"{whole.total:,} queries are too few to see a tail; {FEWEST_QUERIES:,} are needed.")
    tail = hidden_tail(whole)
    return CLEAR if tail is None else _found(trial, whole, tail)


def hidden_tail(whole: Histogram) -> Tail | None:
    """The queries that wait ten times as long as mean and median, if a reliable percentile is among them."""
    middle_ns = max(whole.mean_ns or 0.0, float(whole.percentile(50) or 0))
    from_ns = max(SMALLEST_TAIL_NS, LARGEST_RATIO * middle_ns)
    slow = [(value, count) for value, count in zip(whole.values_ns, whole.counts) if value >= from_ns]
    beyond = sum(count for _, count in slow)
    for percent in PERCENTILES:
        at_ns = whole.percentile(percent)
        if at_ns is not None and at_ns >= from_ns and beyond >= FEWEST_BEYOND:
            waited_ns = sum(value * count for value, count in zip(whole.values_ns, whole.counts))
            time_share = sum(value * count for value, count in slow) / waited_ns
            return Tail(percent, at_ns, from_ns, beyond, beyond / whole.total, time_share)
    return None


def _found(trial: Trial, whole: Histogram, tail: Tail) -> Conclusion:
    mean_ms, median_ms = (whole.mean_ns or 0.0) / 1e6, (whole.percentile(50) or 0) / 1e6
    maximum_ns, timeout_ns = whole.max_ns or 0, trial.load.timeout_ns
    longest = f"≥ {timeout_ns / 1e6:,.0f}" if timeout_ns and maximum_ns >= timeout_ns else digits(maximum_ns / 1e6)
    return Conclusion(
        "found",
        summary=f"The mean is {digits(mean_ms)} ms and the median {digits(median_ms)} ms, but {tail.beyond:,} of {whole.total:,} queries "
        f"({tail.share:.2%}) waited {digits(tail.from_ns / 1e6)} ms or longer: {tail.time_share:.0%} of the total waiting time. "
        f"p{tail.percent:g} is {digits(tail.at_ns / 1e6)} ms, the longest wait {longest} ms.",
        evidence={
            "mean_ms": round(mean_ms, 4),
            "p50_ms": round(median_ms, 4),
            "percentile": tail.percent,
            "percentile_ms": round(tail.at_ns / 1e6, 3),
            "percentile_to_mean_ratio": round(tail.at_ns / 1e6 / mean_ms, 1),
            "tail_from_ms": round(tail.from_ns / 1e6, 3),
            "queries_in_tail": tail.beyond,
            "queries_in_tail_percent": round(100 * tail.share, 4),
            "time_in_tail_percent": round(100 * tail.time_share, 1),
            "max_ms": round(maximum_ns / 1e6, 3),
        },
        metrics=("mean_ms", "p50_ms", "p99_9_ms", "p99_99_ms", "max_ms"),
        remedy="Compare the slowest percentiles, never the mean (`dnsrig compare A B --fail-if 'p99.9 > 110 %'`). The heat map of "
        "`dnsrig report` shows when the slow queries occurred; `blocked-thread` and `cold-first-interval` may show why.",
    )
