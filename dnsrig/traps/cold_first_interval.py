"""The first interval is slower than all that follow: what was measured is a server that still gets warm.

Caches of a resolver, of the CPU and of the kernel's routes are empty at first, connections are yet to be made, and a
figure over the whole time mixes two states. A percentile is taken that ten queries of each interval lie beyond, so that
it is not one query's luck.

A single pause of the machine may fall into the first interval by chance. It makes as many queries late as fall into its
length, and the longest wait is that length: where this is what was seen, one trial cannot tell; several repeats that
all begin so can.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from dnsrig.analysis.latency import Interval
from dnsrig.analysis.read import Run, Trial
from dnsrig.rundir import Scalar
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

TITLE = "the first interval was cold"
SOURCE = "S5: P. Spacek, DNSSEC validation: performance killer?: more than 2 % unanswered in a resolver's first minute (2022)"
FEWEST_INTERVALS = 5
LARGEST_RATIO = 2.0
"""First interval to the median of the others, from which it is called cold; it must be beyond the largest of them,
too."""
PERCENTILES = (99.0, 95.0, 90.0, 75.0)
FEWEST_BEYOND = 10
"""Queries of an interval beyond the percentile that is compared."""
SMALLEST_UNANSWERED_SHARE = 0.001
"""Of an interval's queries: fewer without an answer are not called many."""
PAUSE_SHARES = (1 / 16, 1.5)
"""Of the queries that a pause of the whole server would make late, so many: it may block one of several threads
only."""
CHANCE_DEVIATIONS = 3
"""Standard deviations of the number of arrivals by which there may be more."""
ALPHA = 0.01
"""Probability below which it is no chance that so many repeats have their slowest interval first."""


PAUSE_INTERVALS = 2
"""A pause shorter than an interval lies in one or, where it crosses a border, in two."""


@dataclass(frozen=True)
class Cold:
    """A run of intervals at the start that differs from all that follow."""

    intervals: int
    first: float
    usual: float
    """The median of the intervals that follow."""
    largest: float
    """Of those that follow."""


@dataclass(frozen=True)
class Look:
    """What the intervals of one trial show."""

    intervals: list[Interval]
    percent: float
    slow: Cold | None
    """By that percentile, in ns."""
    lost: Cold | None
    """By the share of queries without an answer."""

    @property
    def like_one_pause(self) -> bool:
        if self.slow is None or self.slow.intervals > PAUSE_INTERVALS or self.lost is not None:
            return False
        first, later = self.intervals[: self.slow.intervals], self.intervals[self.slow.intervals :]
        # A pause that ends soon after the border leaves most queries of the second interval alone; a cold server does
        # not.
        usual_ns = statistics.median(interval.histogram.percentile(50) or 0 for interval in later)
        alone = all((interval.histogram.percentile(50) or 0) <= LARGEST_RATIO * usual_ns for interval in first[1:])
        return alone and is_like_a_pause(first)


def after(trial: Trial) -> Conclusion | None:
    if not _applies(trial):
        return None
    look = look_at(trial)
    if isinstance(look, Conclusion):
        return look
    if look.slow is None and look.lost is None:
        return CLEAR
    if look.slow is not None and look.like_one_pause:
        return cannot_tell(
            f"p{look.percent:g} of the first interval was {digits(look.slow.first / 1e6)} ms, {digits(look.slow.usual / 1e6)} ms after, but "
            "one pause of the machine would look the same: more repeats tell (`--repeats 5`)."
        )
    return _found(trial, look)


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """Variants whose repeats each may have had a pause in the first interval, but too many of them to believe it."""
    for variant in run.manifest.variants:
        measured = [trial for trial in run.of_variant(variant.id) if _applies(trial)]
        looks = {t.record.spec.repeat: look for t in measured if isinstance(look := look_at(t), Look)}
        first = {repeat: look for repeat, look in looks.items() if look.slow is not None}
        if not first or not any(look.like_one_pause for look in first.values()):
            continue
        chance = chance_of_first(len(first), len(looks), min(len(look.intervals) for look in looks.values()))
        if chance <= ALPHA:
            yield variant.id, _found_in_repeats(measured[0], first, len(looks), chance)


def _applies(trial: Trial) -> bool:
    return trial.load.has_latencies and trial.record.outcome in JUDGED


def look_at(trial: Trial) -> Look | Conclusion:
    """A conclusion where the intervals are too few or have too few queries."""
    intervals = whole_intervals(trial.latency.intervals("due") if trial.latency else [])
    if len(intervals) < FEWEST_INTERVALS:
        return cannot_tell(
            f"{len(intervals)} intervals: {FEWEST_INTERVALS} or more are needed to call one of them unusual."
        )
    percent = percentile_for(min(interval.histogram.total for interval in intervals))
    if percent is None:
        return cannot_tell("An interval has too few queries for a percentile.")
    slow = cold_start([float(interval.histogram.percentile(percent) or 0) for interval in intervals])
    lost = cold_start(_unanswered(trial))
    if lost is not None and (lost.first < SMALLEST_UNANSWERED_SHARE or _unanswered_count(trial) < FEWEST_BEYOND):
        lost = None
    return Look(intervals, percent, slow, lost)


def is_like_a_pause(intervals: Sequence[Interval]) -> bool:
    """Whether one pause would make these queries late: those due in its first half wait for more than half of its
    length.

    Its length is the longest wait; or the tenth longest, where some of those had another reason.
    """
    of = reduce(operator.add, (interval.histogram for interval in intervals))
    rate_qps = of.total / sum(interval.duration_s for interval in intervals)
    fewest, most = PAUSE_SHARES
    for rank in (1, FEWEST_BEYOND):
        pause_ns = of.percentile(100 * (1 - (rank - 1) / of.total)) or 0
        late = sum(count for value, count in zip(of.values_ns, of.counts) if value > pause_ns / 2)
        expected = pause_ns / 2 / 1e9 * rate_qps
        if fewest * expected <= late <= most * expected + CHANCE_DEVIATIONS * math.sqrt(expected):
            return True
    return False


def chance_of_first(firsts: int, repeats: int, intervals: int) -> float:
    """P that at least so many repeats have their slowest interval first, where any of the intervals may be it."""
    p = 1 / intervals
    return math.fsum(math.comb(repeats, n) * p**n * (1 - p) ** (repeats - n) for n in range(firsts, repeats + 1))


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


def _found(trial: Trial, look: Look) -> Conclusion:
    slow, lost = look.slow, look.lost
    count = max(part.intervals for part in (slow, lost) if part is not None)
    cold_s = sum(interval.duration_s for interval in look.intervals[:count])
    told = []
    evidence: dict[str, Scalar | None] = {
        "cold_intervals": count,
        "cold_s": round(cold_s, 3),
        "intervals": len(look.intervals),
    }
    if slow is not None:
        first_ms, usual_ms, largest_ms = (value / 1e6 for value in (slow.first, slow.usual, slow.largest))
        told.append(
            f"p{look.percent:g} was {digits(first_ms)} ms in the first interval, {digits(usual_ms)} ms in the median one after and never "
            f"more than {digits(largest_ms)} ms"
        )
        evidence |= {
            "percentile": look.percent,
            "first_ms": round(first_ms, 4),
            "usual_ms": round(usual_ms, 4),
            "largest_ms": round(largest_ms, 4),
        }
    if lost is not None:
        told.append(f"{lost.first:.2%} of its queries had no answer, {lost.usual:.2%} of those of the median one after")
        evidence |= {
            "first_unanswered_percent": round(100 * lost.first, 3),
            "usual_unanswered_percent": round(100 * lost.usual, 3),
        }
    return Conclusion(
        "found",
        summary=f"The first {digits(cold_s)} s differ from the rest: {'; '.join(told)}.",
        evidence=evidence,
        metrics=_metrics(trial),
        remedy=_remedy(cold_s),
    )


def _found_in_repeats(trial: Trial, first: dict[int, Look], repeats: int, chance: float) -> Conclusion:
    looks = [look for look in first.values() if look.slow is not None]
    ratio = statistics.median(look.slow.first / max(1.0, look.slow.usual) for look in looks if look.slow)
    cold_s = looks[0].intervals[0].duration_s
    return Conclusion(
        "found",
        summary=f"In {len(looks)} of {repeats} repeats the first interval was the slowest, {digits(ratio)} times the median one after: "
        f"each might be one pause of the machine, but so many are no chance (p = {chance:.2g}).",
        evidence={
            "repeats": repeats,
            "repeats_cold": len(looks),
            "first_to_usual_ratio": round(ratio, 2),
            "intervals": len(looks[0].intervals),
            "p": chance,
        },
        metrics=_metrics(trial),
        remedy=_remedy(cold_s),
    )


def _metrics(trial: Trial) -> tuple[str, ...]:
    return (trial.record.spec.main_metric, "p99_ms", "p99_9_ms", "max_ms", "unanswered_share_percent")


def _remedy(cold_s: float) -> str:
    return (
        f"Let the server warm up before `measure` begins: `--set options.warmup_s={max(1, round(2 * cold_s))}`; or, where the cold "
        "start is the question, measure it alone."
    )
