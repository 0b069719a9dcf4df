"""Comparing what is known between two ends: a difference is one where it holds with each side at its least favourable
end.

The lateness of an instrument makes a latency an interval (docs/explanation/latency.md), and a figure at its ceiling is
only known to be at least that: its upper end is infinite. That the one is larger must hold of its lower ends beside the
other's upper ends, that it is smaller of its upper ends beside the other's lower ends.
"""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dnsrig.stats import statistics
from dnsrig.stats.statistics import Better, Bound, Comparison, Interval


@dataclass(frozen=True)
class Ends:
    """Repeats, each known to lie between two ends."""

    low: Sequence[float]
    high: Sequence[float]
    """As many; infinite where nothing is known above."""

    @property
    def exact(self) -> bool:
        return list(self.low) == list(self.high)

    @property
    def has_median(self) -> bool:
        """Whether the median is known above: it is where fewer than half of the repeats are not."""
        return bool(self.high) and math.isfinite(stdlib.median(self.high))


Pair = Callable[[Sequence[float], Sequence[float], Better], Comparison]


def compare(ours: Ends, theirs: Ends, better: Better, pair: Pair = statistics.compare) -> Comparison:
    """``ours`` in percent of ``theirs``: at the upper ends where both medians are known there, with the interval that
    covers both ends.

    ``pair`` compares exact values, given in the order of these ends.
    """
    if ours.exact and theirs.exact:
        return pair(ours.high, theirs.high, better)
    least = pair(ours.low, theirs.high, better) if theirs.has_median else None
    most = pair(ours.high, theirs.low, better) if ours.has_median else None
    at_upper = pair(ours.high, theirs.high, better) if least and most else least or most
    if at_upper is None or at_upper.percent is None or not math.isfinite(at_upper.percent):
        return statistics.nothing_to_compare(better)
    between = (least.percent, most.percent) if least and most and least.percent and most.percent else None
    bound: Bound = "" if least and most else "≥" if least else "≤"
    means = at_upper.of_mean if least and most else None
    return replace(
        at_upper, interval=_hull(least, most), p=_p(least, most), between=between, bound=bound, of_mean=means
    )


def hull(
    ours: Ends, theirs: Ends, interval: Callable[[Sequence[float], Sequence[float]], Interval | None]
) -> Interval | None:
    """From the least of ``interval`` to the most; None where either end has none."""
    least, most = interval(ours.low, theirs.high), interval(ours.high, theirs.low)
    return None if least is None or most is None else Interval(least.low, most.high, most.confidence)


def _hull(least: Comparison | None, most: Comparison | None) -> Interval | None:
    known = [comparison.interval for comparison in (least, most) if comparison is not None]
    if not known or any(interval is None for interval in known):
        return None
    low = least.interval.low if least and least.interval else 0.0
    high = most.interval.high if most and most.interval else math.inf
    return Interval(low, high, next(interval.confidence for interval in known if interval))


def _p(least: Comparison | None, most: Comparison | None) -> float | None:
    """Of the end at which the difference is smaller; 1 where the ends do not agree that there is one."""
    if least is not None and least.percent is not None and least.percent > 100:
        return least.p
    if most is not None and most.percent is not None and most.percent < 100:
        return most.p
    return None if all(end is None or end.p is None for end in (least, most)) else 1.0
