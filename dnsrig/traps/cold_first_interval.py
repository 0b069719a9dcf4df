"""The first interval is slower than all that follow: what was measured is a server that still gets warm.

Caches of a resolver, of the CPU and of the kernel's routes are empty at first, connections are yet to be made, and a figure over the
whole time mixes two states. A percentile is taken that ten queries of each interval lie beyond, so that it is not one query's luck.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dnsrig.analysis.latency import Interval
from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 55
TITLE = "the first interval was cold"
SOURCE = "S5: P. Spacek, DNSSEC validation: performance killer?: more than 2 % unanswered in a resolver's first minute (2022)"
FEWEST_INTERVALS = 5
LARGEST_RATIO = 2.0
"""First interval to the median of the others, from which it is called cold; it must be beyond the largest of them, too."""
PERCENTILES = (99.0, 95.0, 90.0, 75.0)
FEWEST_BEYOND = 10
"""Queries of an interval beyond the percentile that is compared."""
SMALLEST_UNANSWERED_SHARE = 0.001
"""Of an interval's queries: fewer without an answer are not called many."""


@dataclass(frozen=True)
class Cold:
    """A run of intervals at the start that differs from all that follow."""

    intervals: int
    first: float
    usual: float
    """The median of the intervals that follow."""
    largest: float
    """Of those that follow."""


def after(trial: Trial) -> Conclusion | None:
    if not trial.load or trial.load.get("model") == "ramp" or trial.record.outcome not in ("done", "limit"):
        return None
    intervals = whole_intervals(trial.latency.intervals("due") if trial.latency else [])
    if len(intervals) < FEWEST_INTERVALS:
        return cannot_tell(
            f"{len(intervals)} intervals: {FEWEST_INTERVALS} or more are needed to call one of them unusual."
        )
    percent = percentile_for(min(interval.histogram.total for interval in intervals))
    if percent is None:
        return cannot_tell("An interval has too few queries for a percentile.")
    slow = cold_start([float(interval.histogram.percentile(percent) or 0) for interval in intervals])
    unanswered = _unanswered(trial)
    lost = cold_start(unanswered)
    if lost is not None and (lost.first < SMALLEST_UNANSWERED_SHARE or _unanswered_count(trial) < FEWEST_BEYOND):
        lost = None
    if slow is None and lost is None:
        return CLEAR
    return _found(trial, intervals, percent, slow, lost)


def whole_intervals(intervals: Sequence[Interval]) -> list[Interval]:
    """Without a last one that is shorter than the others, and without those in which nothing was due."""
    longest_s = max((interval.duration_s for interval in intervals), default=0.0)
    return [i for i in intervals if i.duration_s > 0.9 * longest_s and i.histogram.total]


def percentile_for(queries: int) -> float | None:
    """The highest percentile that ``FEWEST_BEYOND`` of so many queries lie beyond."""
    return next((percent for percent in PERCENTILES if queries * (100 - percent) / 100 >= FEWEST_BEYOND), None)


def cold_start(values: Sequence[float]) -> Cold | None:
    """How many values at the start are larger than all of the rest, and by ``LARGEST_RATIO`` than its median.

    ``values``: one an interval, in order of time. The second half is what is usual, so at most the first half is cold.
    """
    if len(values) < FEWEST_INTERVALS:
        return None
    later = values[len(values) // 2 :]
    threshold = max(*later, LARGEST_RATIO * statistics.median(later))
    cold = next((number for number, value in enumerate(values) if value <= threshold), len(values))
    rest = values[cold:]
    if not cold or values[0] <= max(rest) or values[0] < LARGEST_RATIO * statistics.median(rest):
        return None
    return Cold(cold, values[0], statistics.median(rest), max(rest))


def _unanswered(trial: Trial) -> list[float]:
    """The share of unanswered queries of each interval."""
    rows = trial.load_intervals
    return [(row["timeouts"] + row["lost"]) / row["due"] for row in rows.iter_rows(named=True) if row["due"]]


def _unanswered_count(trial: Trial) -> int:
    """In the first interval."""
    row = trial.load_intervals.row(0, named=True)
    return int(row["timeouts"]) + int(row["lost"])


def _found(
    trial: Trial, intervals: Sequence[Interval], percent: float, slow: Cold | None, lost: Cold | None
) -> Conclusion:
    count = max(part.intervals for part in (slow, lost) if part is not None)
    seconds = sum(interval.duration_s for interval in intervals[:count])
    told, evidence = [], {"cold_intervals": count, "cold_s": round(seconds, 3), "intervals": len(intervals)}
    if slow is not None:
        ms = [value / 1e6 for value in (slow.first, slow.usual, slow.largest)]
        told.append(
            f"p{percent:g} was {ms[0]:.3g} ms in the first interval, {ms[1]:.3g} ms in the median one after and never more than {ms[2]:.3g} ms"
        )
        evidence |= {
            "percentile": percent,
            "first_ms": round(ms[0], 4),
            "usual_ms": round(ms[1], 4),
            "largest_ms": round(ms[2], 4),
        }
    if lost is not None:
        told.append(
            f"{lost.first:.2%} of the queries of the first interval had no answer, {lost.usual:.2%} of the median one after"
        )
        evidence |= {
            "first_unanswered_percent": round(100 * lost.first, 3),
            "usual_unanswered_percent": round(100 * lost.usual, 3),
        }
    told_all = "; ".join(told)
    return Conclusion(
        "found",
        summary=f"The first {seconds:.3g} s differ from the rest: {told_all}.",
        evidence=evidence,
        metrics=(trial.record.spec.main_metric, "p99_ms", "p99_9_ms", "max_ms", "unanswered_share_percent"),
        remedy=f"Let the server warm up before `measure` begins: `--set options.warmup_s={max(1, round(2 * seconds))}`; or, where the "
        "cold start is the question, measure it alone.",
    )
