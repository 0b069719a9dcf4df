"""How probable it is, after all trials, that each commit is the one.

Before any trial every commit is as probable as any other. The commit being the one, all trials of commits before it are
like those of the good end, and all others are like those of the bad end: each side has one distribution over the bins,
of which nothing was known before (Dirichlet-multinomial, one pseudo-observation a bin). What the trials of both ends
leave unknown of it is thus the same for all commits, and does not count as evidence anew with each of them. Commits
between two that were measured cannot be distinguished, and form one `Cell`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Counts = Sequence[int]
"""Trials in each bin."""


@dataclass(frozen=True)
class Cell:
    """The commits ``first`` to ``last``: one of them is the one with ``probability``."""

    first: int
    last: int
    probability: float

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def log_likelihood(counts: Counts) -> float:
    """The logarithm of the probability of trials that fall into bins with ``counts``, in their order."""
    each = math.fsum(math.lgamma(count + 1) for count in counts)
    return each + math.lgamma(len(counts)) - math.lgamma(sum(counts) + len(counts))


def log_likelihoods(good: Counts, bad: Counts, measured: Mapping[int, Counts]) -> list[float]:
    """Log-likelihood of all trials, the change being before the first of ``measured`` in order, before the second, …,
    after the last. ``good`` and ``bad`` are the trials of the ends."""
    commits = sorted(measured)
    before, after = list(good), _sum([bad, *measured.values()])
    found = []
    for commit in [None, *commits]:
        if commit is not None:
            before = _sum([before, measured[commit]])
            after = [left - gone for left, gone in zip(after, measured[commit])]
        found.append(log_likelihood(before) + log_likelihood(after))
    return found


def cells(good: Counts, bad: Counts, measured: Mapping[int, Counts], commits: int) -> list[Cell]:
    """In order, from commit 1 to ``commits``."""
    borders = [0, *sorted(measured), commits]
    spans = [(low + 1, high) for low, high in itertools.pairwise(borders)]
    logs = log_likelihoods(good, bad, measured)
    weighted = [log + math.log(last - first + 1) for log, (first, last) in zip(logs, spans)]
    weights = [math.exp(log - max(weighted)) for log in weighted]
    total = math.fsum(weights)
    return [Cell(first, last, weight / total) for (first, last), weight in zip(spans, weights)]


def credible(found: Sequence[Cell], error: float) -> Cell:
    """The most probable cell, and as many of its neighbours, the more probable one first, as leave out at most
    ``error``."""
    low = high = max(range(len(found)), key=lambda i: found[i].probability)
    probability = found[low].probability
    while probability < 1 - error and (low > 0 or high + 1 < len(found)):
        below = found[low - 1].probability if low > 0 else -1.0
        above = found[high + 1].probability if high + 1 < len(found) else -1.0
        if below > above:
            low -= 1
        else:
            high += 1
        probability += max(below, above)
    return Cell(found[low].first, found[high].last, min(1.0, probability))


def within(found: Iterable[Cell], first: int, last: int) -> float:
    """The probability that one of ``first`` to ``last``, both ends of cells, is the one."""
    return min(1.0, math.fsum(cell.probability for cell in found if first <= cell.first and cell.last <= last))


def _sum(each: Sequence[Counts]) -> list[int]:
    return [sum(column) for column in zip(*each)]
