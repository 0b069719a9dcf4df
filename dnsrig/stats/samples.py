"""Compares the repeats of two variants. This is the one comparison: tables, verdicts, thresholds and histories use it.

A repeat gives one sample, which lies between two ends: the lateness of an instrument makes a latency an interval
(docs/explanation/latency.md), and a figure at its ceiling is only known to be at least the ceiling, so its upper end is
infinite. A difference must hold with each side at its least favourable end. If one side is larger, its lower ends must
be larger than the other's upper ends; if it is smaller, its upper ends must be smaller than the other's lower ends.

Samples of the same machine are compared with each other (`machines`). Samples of the same rounds are compared round by
round, if there are enough of them (`rounds`, `significance`).
"""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dnsrig.stats import machines, rounds, significance, statistics
from dnsrig.stats.statistics import Better, Bound, Comparison, Exact, Interval, Spread, Strata


@dataclass(frozen=True)
class Sample:
    """The figure of one trial."""

    value: float
    """The measured value; if ``at_least``, the bound that the figure is known to reach."""
    low: float
    """The lower end: ``value``, unless the instrument adds a known amount."""
    at_least: bool = False
    round: int | None = None
    """The repeat in which it was measured; None: it has no round in common with the other side."""
    machine: str = ""
    """Where it was measured, if that matters to the comparison."""

    @property
    def high(self) -> float:
        """The upper end; infinite if nothing is known above."""
        return math.inf if self.at_least else self.value


class Samples(tuple[Sample, ...]):
    """The samples of a variant under one metric."""

    __slots__ = ()

    @classmethod
    def exact(cls, values: Iterable[float]) -> Samples:
        """Samples of which nothing but the value is known."""
        return cls(Sample(value, value) for value in values)

    @property
    def numbers(self) -> list[float]:
        """All values, with those that are only lower bounds."""
        return [sample.value for sample in self]

    @property
    def measured(self) -> list[float]:
        """The values that were measured."""
        return [sample.value for sample in self if not sample.at_least]

    @property
    def bounds(self) -> list[float]:
        """The values that are only lower bounds."""
        return [sample.value for sample in self if sample.at_least]

    @property
    def low(self) -> list[float]:
        return [sample.low for sample in self]

    @property
    def high(self) -> list[float]:
        return [sample.high for sample in self]

    @property
    def machines(self) -> list[str]:
        return [sample.machine for sample in self]

    @property
    def rounds(self) -> list[int | None]:
        return [sample.round for sample in self]

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    @property
    def censored(self) -> bool:
        """Whether a value is only a lower bound."""
        return any(sample.at_least for sample in self)

    @property
    def has_median(self) -> bool:
        """Whether the median is known above: fewer than half of the values are only lower bounds."""
        return bool(self) and math.isfinite(stdlib.median(self.high))

    @property
    def spread(self) -> Spread | None:
        """The spread of all values, those at their bounds included."""
        return statistics.spread(self.numbers)

    @property
    def lower_spread(self) -> Spread | None:
        return statistics.spread(self.low)

    @property
    def interval(self) -> Interval | None:
        """The interval of the median; None if it is not known above."""
        return None if self.censored else statistics.bootstrap_interval(self.numbers)

    def as_measured(self) -> Samples:
        """These samples with each bound taken as the value itself."""
        return Samples(replace(sample, at_least=False) for sample in self)

    def without_rounds(self) -> Samples:
        return Samples(replace(sample, round=None) for sample in self)

    def without_machines(self) -> Samples:
        return Samples(replace(sample, machine="") for sample in self)


def compare(ours: Samples, theirs: Samples, better: Better, comparisons: int = 1) -> Comparison:
    """``ours`` in percent of ``theirs``: at the upper ends if both medians are known there, with the interval that
    covers both ends.

    ``comparisons``: the number of comparisons that p is corrected for, which decides the test.
    """

    def exact(one: Sequence[float], other: Sequence[float], better: Better) -> Comparison:
        return machines.compare(strata(one, other, ours, theirs), better)

    pair = rounds.pair(exact) if by_rounds(ours, theirs, comparisons) else exact
    return _compare(ours, theirs, better, pair)


def by_rounds(ours: Samples, theirs: Samples, comparisons: int) -> bool:
    """Whether both are compared round by round. A value at its ceiling has no place in a ratio within a round."""
    same = ours.rounds == theirs.rounds and None not in ours.rounds and not (ours.censored or theirs.censored)
    return same and significance.by_rounds(len(ours), comparisons)


def strata(our_values: Sequence[float], their_values: Sequence[float], ours: Samples, theirs: Samples) -> Strata:
    """Values of ``ours`` and ``theirs``, by the machine that each sample was measured on."""
    return machines.strata(our_values, their_values, ours.machines, theirs.machines)


def hull(
    ours: Samples, theirs: Samples, interval: Callable[[Sequence[float], Sequence[float]], Interval | None]
) -> Interval | None:
    """The range from the least to the most of ``interval``; None if either end has none."""
    least, most = interval(ours.low, theirs.high), interval(ours.high, theirs.low)
    return None if least is None or most is None else Interval(least.low, most.high, most.confidence)


def _compare(ours: Samples, theirs: Samples, better: Better, pair: Exact) -> Comparison:
    if ours.is_exact and theirs.is_exact:
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


def _hull(least: Comparison | None, most: Comparison | None) -> Interval | None:
    known = [comparison.interval for comparison in (least, most) if comparison is not None]
    if not known or any(interval is None for interval in known):
        return None
    low = least.interval.low if least and least.interval else 0.0
    high = most.interval.high if most and most.interval else math.inf
    return Interval(low, high, next(interval.confidence for interval in known if interval))


def _p(least: Comparison | None, most: Comparison | None) -> float | None:
    """The p of the end at which the difference is smaller; 1 if the ends do not agree that there is a difference."""
    if least is not None and least.percent is not None and least.percent > 100:
        return least.p
    if most is not None and most.percent is not None and most.percent < 100:
        return most.p
    return None if all(end is None or end.p is None for end in (least, most)) else 1.0
