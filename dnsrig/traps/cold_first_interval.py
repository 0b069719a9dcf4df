"""The first interval is slower than all that follow: the measurement includes the warm-up of the server.

Caches of a resolver, of the CPU and of the kernel's routes are empty at first, and connections must be opened. A figure
over the whole time mixes two states. The trap compares a percentile that at least ten queries of each interval exceed,
so that it does not depend on the luck of a single query.

A single pause of the machine may fall into the first interval by chance. The number of late queries then matches the
length of the pause, and the longest wait is that length. If a trial looks like this, it cannot be decided from one
trial; it can be from several repeats that all begin so.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from dnsrig.rundir import Scalar
from dnsrig.runs.latency import Interval
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

GROUP = "stalls and warm-up"
TITLE = "the first interval was cold"
SOURCE = "S5: P. Spacek, DNSSEC validation: performance killer?: more than 2 % unanswered in a resolver's first minute (2022)"
FEWEST_INTERVALS = 5
LARGEST_RATIO = 2.0
"""The first interval is cold if it exceeds the median of the others by this factor, and the largest of them too."""
PERCENTILES = (99.0, 95.0, 90.0, 75.0)
FEWEST_BEYOND = 10
"""Least number of queries of an interval beyond the compared percentile."""
SMALLEST_UNANSWERED_SHARE = 0.001
"""Share of an interval's queries without an answer; a smaller share is not called many."""
PAUSE_SHARES = (1 / 16, 1.5)
"""Least and largest number of late queries, as shares of those that a pause of the whole server would delay: a pause
may block only one of several threads."""
CHANCE_DEVIATIONS = 3
"""Standard deviations of the number of arrivals by which the number of late queries may be larger."""
ALPHA = 0.01
"""Largest probability of chance at which repeats with their slowest interval first count as cold."""


PAUSE_INTERVALS = 2
"""A pause shorter than an interval affects one interval, or two if it crosses a border."""


@dataclass(frozen=True)
class Cold:
    """A run of intervals at the start that differs from all that follow."""

    intervals: int
    first: float
    usual: float
    """The median of the intervals that follow."""
    largest: float
    """The largest of the intervals that follow."""


@dataclass(frozen=True)
class Look:
    """What the intervals of one trial show."""

    intervals: list[Interval]
    percent: float
    slow: Cold | None
    """Cold by that percentile, in ns."""
    lost: Cold | None
    """Cold by the share of queries without an answer."""

    @property
    def like_one_pause(self) -> bool:
        if self.slow is None or self.slow.intervals > PAUSE_INTERVALS or self.lost is not None:
            return False
        first, later = self.intervals[: self.slow.intervals], self.intervals[self.slow.intervals :]
        # A pause that ends soon after the border does not delay most queries of the second interval; a cold server
        # does.
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
            f"p{look.percent:g} of the first interval was {digits(look.slow.first / 1e6)} ms and later {digits(look.slow.usual / 1e6)} ms, but "
            "one pause of the machine would look the same. More repeats can decide this (`--repeats 5`)."
        )
    return _found(trial, look)


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """Variants in which a pause could explain each cold repeat, but not all of them."""
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
    """A conclusion if there are too few intervals, or too few queries in them."""
    intervals = whole_intervals(trial.latency.intervals("due") if trial.latency else [])
    if len(intervals) < FEWEST_INTERVALS:
        return cannot_tell(
            f"There are {len(intervals)} intervals; at least {FEWEST_INTERVALS} are needed to call one of them unusual."
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
    """Whether one pause explains these late queries: those due in its first half wait longer than half of its length.

    Its length is the longest wait, or the tenth longest, as some of the longer waits may have another cause.
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
    """Probability that at least ``firsts`` repeats have their slowest interval first, if each interval is equally
    likely."""
    p = 1 / intervals
    return math.fsum(math.comb(repeats, n) * p**n * (1 - p) ** (repeats - n) for n in range(firsts, repeats + 1))


def whole_intervals(intervals: Sequence[Interval]) -> list[Interval]:
    """The intervals without a last one that is shorter than the others, and without those in which nothing was due."""
    longest_s = max((interval.duration_s for interval in intervals), default=0.0)
    return [i for i in intervals if i.duration_s > 0.9 * longest_s and i.histogram.total]


def percentile_for(queries: int) -> float | None:
    """The highest percentile that ``FEWEST_BEYOND`` of ``queries`` exceed."""
    return next((percent for percent in PERCENTILES if queries * (100 - percent) / 100 >= FEWEST_BEYOND), None)


def cold_start(values: Sequence[float]) -> Cold | None:
    """The values at the start that exceed all others, and the median of the others by ``LARGEST_RATIO``.

    ``values``: one for each interval, in order of time. The second half counts as usual, so at most the first half is
    cold.
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
    """Number of unanswered queries in the first interval."""
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
            f"p{look.percent:g} was {digits(first_ms)} ms in the first interval; in later ones {digits(usual_ms)} ms in the median and at most "
            f"{digits(largest_ms)} ms"
        )
        evidence |= {
            "percentile": look.percent,
            "first_ms": round(first_ms, 4),
            "usual_ms": round(usual_ms, 4),
            "largest_ms": round(largest_ms, 4),
        }
    if lost is not None:
        told.append(
            f"{lost.first:.2%} of the first interval's queries had no answer; of later ones {lost.usual:.2%} in the median"
        )
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
        summary=f"In {len(looks)} of {repeats} repeats the first interval was the slowest, {digits(ratio)} times the median of later ones. "
        f"Each might be one pause of the machine, but this number of repeats is not chance (p = {chance:.2g}).",
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
        f"Let the server warm up before `measure` begins: `--set options.warmup_s={max(1, round(2 * cold_s))}`; or, if the cold "
        "start is the question, measure it alone."
    )
