"""Whether the ends differ as the criterion says: a test with six looks, after which it is over.

At each look the hypothesis that the bad end does *not* fulfil the criterion is rejected where its one-sided p is at
most `ALPHA_A_LOOK`, so that all looks together reject a true one with at most `ALPHA` (Bonferroni's inequality; the
simplest spending of alpha in the sense of Lan and DeMets, Discrete sequential boundaries for clinical trials, 1983).
The opposite hypothesis is tested in the same way. The first look has the exact rank test, those after it the exact
signed-rank test within rounds, which no drift between rounds disturbs (`dnsrig.stats.significance`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from dnsrig.comparison.bisection.state import GOOD, Scale, State, scale
from dnsrig.comparison.criterion import Criterion
from dnsrig.stats.rounds import signed_rank_test
from dnsrig.stats.statistics import doubled_midranks, rank_test

LOOKS = (6, 10, 14, 20, 28, 40)
"""Rounds. Six against six give 0.001 at best, one-sided, and so do ten pairs."""
ALPHA = 0.01
ALPHA_A_LOOK = ALPHA / len(LOOKS)

Verdict = Literal["open", "differ", "same", "undecided"]
Pairs = tuple[tuple[float, float], ...]
"""For each round, the good end and the bad one, on the scale."""


@dataclass(frozen=True)
class Difference:
    """What is known of the ends after ``rounds``, the last look that there was. ``p`` is one-sided: that the criterion
    seems fulfilled, and is not."""

    verdict: Verdict
    rounds: int
    p: float | None = None


def difference(state: State) -> Difference:
    """Rounds that lack either end do not count."""
    found = scale(state.rounds, state.criterion)
    ends = [(found.of(r.get(GOOD)), found.of(r.get(state.bad))) for r in state.rounds]
    pairs = tuple((good, bad) for good, bad in ends if good is not None and bad is not None)
    return _difference(pairs[: LOOKS[-1]], state.criterion.model_dump_json(), found)


@lru_cache(maxsize=256)
def _difference(pairs: Pairs, criterion_json: str, found: Scale) -> Difference:
    criterion = Criterion.model_validate_json(criterion_json)
    last: float | None = None
    for look in LOOKS:
        if len(pairs) < look:
            return Difference("open", len(pairs), last)
        ps = list(_tests(pairs[:look], criterion, found))
        last = max(ps)
        if last <= ALPHA_A_LOOK:
            return Difference("differ", look, last)
        if 1 - last <= ALPHA_A_LOOK:
            return Difference("same", look, last)
    return Difference("undecided", LOOKS[-1], last)


def _tests(pairs: Pairs, criterion: Criterion, found: Scale) -> Iterator[float]:
    """One-sided p of each thing that the criterion asks for."""
    if criterion.relative:
        shifted = [(_times(good, criterion.factor, found), bad) for good, bad in pairs]
        yield _beyond(shifted)
        return
    yield _beyond(pairs)
    limit = found.of(criterion.limit) if criterion.limit > 0 or not found.logarithms else -math.inf
    assert limit is not None
    yield _at_least(sum(bad > limit for _, bad in pairs), len(pairs))
    yield _at_least(sum(good <= limit for good, _ in pairs), len(pairs))


def _times(good: float, factor: float, found: Scale) -> float:
    """A value on the scale, times ``factor``."""
    if not found.logarithms:
        return good * factor
    return good + (math.log(factor) if found.worse_is_more else -math.log(factor))


def _beyond(pairs: Sequence[tuple[float, float]]) -> float:
    """The p of the test that the second of each pair is larger."""
    if len(pairs) < LOOKS[1]:
        goods, bads = [good for good, _ in pairs], [bad for _, bad in pairs]
        ranks = doubled_midranks([*bads, *goods])
        direction = sum(ranks[: len(bads)]) - sum(ranks[len(bads) :])
        return _one_sided(rank_test(bads, goods), direction)
    differences = [0.0 if good == bad else bad - good for good, bad in pairs]
    ranks = doubled_midranks([abs(each) for each in differences])
    return _one_sided(signed_rank_test(differences), sum(math.copysign(r, d) for r, d in zip(ranks, differences) if d))


def _one_sided(p: float | None, direction: float) -> float:
    """Both distributions are symmetric: groups have one size, and signs are as likely as their opposites."""
    assert p is not None  # there are enough repeats at each look
    return p / 2 if direction > 0 else 1 - p / 2 if direction < 0 else 0.5


def _at_least(count: int, n: int) -> float:
    """The sign test: that ``count`` or more of ``n`` lie on one side of their median."""
    return float(sum(math.comb(n, k) for k in range(count, n + 1)) / 2**n)
