"""Repeats of one run compared round by round: every round measures each variant once, so drift between rounds is not in
their ratio.

The test is Wilcoxon's signed-rank test of the logarithms of these ratios, which is the stratified test where a stratum
has one trial of each; the ratio and its interval come from the same ranks (Hodges and Lehmann, Estimates of location
based on rank tests, 1963). The interval leaves out 100 % only where the test rejects.

Where a run is spread over machines, a round lies on one of them: ratios within rounds are within machines, too, and
what differs between machines is not in them.
"""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from dnsrig.stats.statistics import FEWEST_REPEATS, Comparison, Exact, Interval, doubled_midranks

Pairs = Sequence[tuple[float, float]]
"""For each round, the variant's value and the baseline's."""


def pair(unpaired: Exact) -> Exact:
    """Compares values of the same rounds, in the same order; what rounds allow no figure of as ``unpaired`` does."""
    return lambda ours, theirs, better: compared(list(zip(ours, theirs, strict=True)), unpaired(ours, theirs, better))


def compared(pairs: Pairs, unpaired: Comparison) -> Comparison:
    """``unpaired`` with the figures that come from the rounds; as it is where rounds allow none."""
    typical = typical_ratio(pairs)
    if typical is None or unpaired.p is None:
        return unpaired
    ratio, interval = typical
    p = signed_rank_test([math.log(ours / theirs) for ours, theirs in pairs])
    ends = Interval(100 * interval.low, 100 * interval.high, interval.confidence)
    return replace(unpaired, percent=100 * ratio, interval=ends, p=p, by_rounds=True)


def signed_rank_test(differences: Sequence[float]) -> float | None:
    """Two-sided p; None below ``FEWEST_REPEATS``. Exact for these very ranks over all signs, so with ties and zeros,
    too.

    Zeros are ranked with the rest and then have no sign (Pratt, Remarks on zeros and ties in the Wilcoxon signed rank
    procedures, 1959).
    """
    if len(differences) < FEWEST_REPEATS:
        return None
    ranked = list(zip(doubled_midranks([abs(d) for d in differences]), differences, strict=True))
    ranks = tuple(sorted(rank for rank, difference in ranked if difference))
    ways = _sums(ranks)
    # Twice the distance from the expectation, in whole numbers, so that no tie is decided by rounding.
    whole = sum(ranks)
    distance = abs(2 * sum(rank for rank, difference in ranked if difference > 0) - whole)
    extreme = sum(count for total, count in enumerate(ways) if abs(2 * total - whole) >= distance)
    return extreme / float(2 ** len(ranks))


def typical_ratio(pairs: Pairs, confidence: float = 0.95) -> tuple[float, Interval] | None:
    """Ratio of the first to the second of each pair: the middle of all means of two logarithms, and the interval that
    the test leaves.

    None below ``FEWEST_REPEATS`` pairs, where a value is not above zero, or where so few pairs bear no such interval.
    """
    if len(pairs) < FEWEST_REPEATS or min(min(pair) for pair in pairs) <= 0:
        return None
    logs = [math.log(a / b) for a, b in pairs]
    means = sorted((x + y) / 2 for place, x in enumerate(logs) for y in logs[place:])
    cut = _cut(len(pairs), (1 - confidence) / 2)
    if cut == 0:
        return None
    low, high = means[cut - 1], means[-cut]
    p = signed_rank_test(logs)
    if p is not None and p > 1 - confidence:
        # The cut supposes ranks without ties and zeros. The test ranks what there is, so its answer comes first.
        low, high = min(low, 0.0), max(high, 0.0)
    return math.exp(stdlib.median(means)), Interval(math.exp(low), math.exp(high), confidence)


def _cut(n: int, tail: float) -> int:
    """How many of the smallest rank sums together weigh at most ``tail``."""
    weight, cut = 0, 0
    for count in _sums(tuple(range(1, n + 1))):
        weight += count
        if weight > tail * 2**n:
            break
        cut += 1
    return cut


@cache
def _sums(ranks: tuple[int, ...]) -> list[int]:
    """How many of all choices of ``ranks`` have each sum; index is the sum."""
    ways = [1] + [0] * sum(ranks)
    for rank in ranks:
        ways = [count + (ways[total - rank] if total >= rank else 0) for total, count in enumerate(ways)]
    return ways
