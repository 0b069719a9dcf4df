"""Change points of a sequence of versions: between which two the repeats of a metric begin to be distributed otherwise.

E-divisive (Matteson and James, A nonparametric approach for multiple change point analysis of multivariate data,
2014), over trials rather than over a figure a version, as Hunter and Otava do: so the spread of the repeats counts.
Differences from the original:

- A change can only lie between two versions, because the repeats of one version are of the same program.
- Distances are between ranks within the segment that is searched. A single slow trial weighs no more than the slowest,
  and a trial that is only known to have taken at least so long has a place all the same.

A change is kept where a test by permutation of the trials says so. What is known of its false alarms and of what it
finds is in docs/results/history.md (`benches/history_simulated.py`).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from dnsrig.stats.statistics import ALPHA, FEWEST_REPEATS, doubled_midranks

PERMUTATIONS = 999
"""The smallest p is then 0.001."""
SEED = 1
"""Seed of the permutations: the same trials give the same change points."""
MOST_VERSIONS = 1_000
"""The time of a test goes with the trials times the versions: 20 versions of 5 repeats take 0.2 s, 100 take 5 s."""

Group = Sequence[float]
"""The repeats of a version."""


@dataclass(frozen=True)
class ChangePoint:
    """From the version before ``at`` to that at ``at`` something changed."""

    at: int
    """Index of the first version after the change."""
    p: float
    """The p of the permutation test: the share of random orders of the trials in which some place looks as much like a
    change as this one."""


@dataclass(frozen=True)
class _Split:
    """Where a segment changes most."""

    statistic: float
    """Matteson and James's Q: 0 or a little less without a change, in the unit of doubled ranks."""
    at: int
    """First group after it, counted from the start of the segment."""


def change_points(
    groups: Sequence[Group],
    *,
    least: int = FEWEST_REPEATS,
    alpha: float = ALPHA,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
) -> list[ChangePoint]:
    """The change points of ``groups``, which are the repeats of versions in their order; by place.

    ``least``: trials that lie before, between and after changes. Each next one is looked for within the segments that
    those found leave, where it is most pronounced; the first that is no more than chance (p above ``alpha``) ends the
    search. Raises ValueError on what is no history: more than ``MOST_VERSIONS``, a version without trials, ``least``
    below 2.
    """
    if len(groups) > MOST_VERSIONS or not all(groups) or least < 2:
        raise ValueError("a history has at most 1,000 versions, each with trials, and segments of at least two")
    shuffler = random.Random(seed)
    segments = [Segment(0, groups, least)]
    found: list[ChangePoint] = []
    while True:
        widest = max(segments, key=lambda segment: segment.best.statistic)
        if widest.best.at == 0:
            break
        p = _p_value(segments, widest.best.statistic, alpha, permutations, shuffler)
        if p > alpha:
            break
        found.append(ChangePoint(widest.first + widest.best.at, p))
        segments.remove(widest)
        segments += widest.halves()
    return sorted(found, key=lambda change: change.at)


def _p_value(
    segments: Sequence[Segment], seen: float, alpha: float, permutations: int, shuffler: random.Random
) -> float:
    """Of ``seen``, the largest statistic of all segments: how often it is as large when the trials of each are
    shuffled.

    No more than are needed to know that p is above ``alpha``; p is then of the permutations that were made.
    """
    as_large = 0
    for made in range(1, permutations + 1):
        as_large += max(segment.shuffled(shuffler).statistic for segment in segments) >= seen
        if as_large + 1 > alpha * (permutations + 1):
            return (as_large + 1) / (made + 1)
    return (as_large + 1) / (permutations + 1)


class Segment:
    """Versions between two changes."""

    def __init__(self, first: int, groups: Sequence[Group], least: int) -> None:
        self.first = first
        self._groups = groups
        self._least = least
        ranks = doubled_midranks([value for group in groups for value in group])
        labels = [number for number, group in enumerate(groups) for _ in group]
        ordered = sorted(zip(ranks, labels, strict=True))
        self._ranks = [rank for rank, _ in ordered]
        self._labels = [label for _, label in ordered]
        self._ends = [0, *itertools.accumulate(map(len, groups))]
        self.best = self._best(self._labels)

    def halves(self) -> list[Segment]:
        at = self.best.at
        return [
            Segment(self.first, self._groups[:at], self._least),
            Segment(self.first + at, self._groups[at:], self._least),
        ]

    def shuffled(self, shuffler: random.Random) -> _Split:
        """The best split when each trial may belong to any of the versions."""
        labels = self._labels.copy()
        shuffler.shuffle(labels)
        return self._best(labels)

    def _best(self, labels: Sequence[int]) -> _Split:
        """``labels``: the version of each rank in rising order.

        What lies before a place is compared with what lies between it and every later one, so that a change that the
        next version takes back is seen, too.
        """
        within = distances_within(self._ranks, labels, len(self._groups))
        ends, least, whole = self._ends, self._least, len(self._groups)
        best = _Split(0.0, 0)
        for at in range(1, whole):
            n = ends[at]
            if n < least:
                continue
            left = within[0][at]
            for end in range(at + 1, whole + 1):
                m = ends[end] - n
                if m < least:
                    continue
                right = within[at][end]
                between = within[0][end] - left - right
                energy = 2 * between / (m * n) - 2 * left / (n * (n - 1)) - 2 * right / (m * (m - 1))
                statistic = energy * m * n / (m + n)
                if statistic > best.statistic:
                    best = _Split(statistic, at)
        return best


def distances_within(ranks: Sequence[int], labels: Sequence[int], groups: int) -> list[list[int]]:
    """[i][j]: the sum of the distances of all pairs of trials in groups i to j - 1.

    ``ranks`` rise, ``labels`` say to which group each belongs. Whole numbers, so two orders that are alike are equal.
    """
    pairs = [[0] * groups for _ in range(groups)]
    counts, sums = [0] * groups, [0] * groups
    for rank, label in zip(ranks, labels, strict=True):
        pairs[label] = [
            sum_ + rank * count - below for sum_, count, below in zip(pairs[label], counts, sums, strict=True)
        ]
        counts[label] += 1
        sums[label] += rank
    within = [[0] * (groups + 1) for _ in range(groups + 1)]
    for start in range(groups - 1, -1, -1):
        row, next_row, added = within[start], within[start + 1], 0
        for end in range(start + 1, groups + 1):
            other = end - 1
            added += pairs[start][other] + (pairs[other][start] if other != start else 0)
            row[end] = next_row[end] + added
    return within
