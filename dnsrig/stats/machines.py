"""Repeats of a run over several machines: each repeat is compared with the baseline of its own machine, so that what
differs between machines is in no comparison.

The test is van Elteren's (`statistics.stratified_rank_test`), a stratum being a machine. The ratio is the weighted
median of all ratios of a repeat to one of the baseline on the same machine, and its interval holds the ratios that the
test does not reject (Hodges and Lehmann, Estimates of location based on rank tests, 1963). With one machine left, all
is as in `statistics`.
"""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Iterable, Sequence

from dnsrig.stats import statistics
from dnsrig.stats.statistics import FEWEST_REPEATS, Better, Comparison, Interval, PercentSpread, Strata

Weighted = list[tuple[float, int]]


def strata(
    ours: Sequence[float], theirs: Sequence[float], our_machines: Sequence[str], their_machines: Sequence[str]
) -> Strata:
    """Values by the machine that each was measured on, of machines with some of both; without machines one stratum."""
    if not our_machines or not their_machines:
        return [(ours, theirs)]
    both = [name for name in dict.fromkeys(our_machines) if name in their_machines]
    return [(_on(name, ours, our_machines), _on(name, theirs, their_machines)) for name in both]


def compare(strata: Strata, better: Better) -> Comparison:
    """The first of each stratum in percent of the second."""
    if len(strata) == 1:
        return statistics.compare(*strata[0], better)
    if not _have_ratios(strata):
        return statistics.nothing_to_compare(better)
    interval = ratio_interval(strata)
    return Comparison(
        percent=100 * math.sqrt(math.prod(_middle(_ratios(strata)))),
        difference=stdlib.fmean(_middle(_differences(strata))),
        interval=Interval(100 * interval.low, 100 * interval.high, interval.confidence) if interval else None,
        p=statistics.stratified_rank_test(strata) if any(len({*a, *b}) > 1 for a, b in strata) else None,
        better=better,
        of_mean=percent_of_mean(strata),
        by_machines=True,
    )


def percent_of_mean(strata: Strata) -> PercentSpread | None:
    """The first of each stratum in percent of the mean of the second."""
    if len(strata) == 1:
        return statistics.percent_of_mean(*strata[0])
    means = [stdlib.fmean(theirs) for _, theirs in strata]
    if min(means, default=0) <= 0:
        return None
    shares = [value / mean for (ours, _), mean in zip(strata, means, strict=True) for value in ours]
    return statistics.percent_of_mean(shares, [1.0])


def ratio_interval(strata: Strata, confidence: float = 0.95) -> Interval | None:
    """Interval of the ratio of the first of each stratum to the second; None with too few repeats, or where one of the
    second is not above zero."""
    if len(strata) == 1:
        return statistics.ratio_interval(*strata[0], confidence)
    if not _have_ratios(strata) or min(sum(map(len, side)) for side in zip(*strata, strict=True)) < FEWEST_REPEATS:
        return None
    cut = _cut(strata, (1 - confidence) / 2)
    if cut is None:
        return None
    ratios = _ratios(strata)
    low, high = _beyond(cut, ratios), _beyond(cut, reversed(ratios))
    p = statistics.stratified_rank_test(strata)
    if p is not None and p > 1 - confidence:
        # The cut supposes ranks without ties. The test ranks what there is, so its answer comes first.
        low, high = min(low, 1.0), max(high, 1.0)
    return Interval(low, high, confidence)


def levelled(values: Sequence[float], machines: Sequence[str]) -> list[float]:
    """``values`` without what differs between machines: each machine's median becomes the median of all."""
    medians = {name: stdlib.median(_on(name, values, machines)) for name in dict.fromkeys(machines)}
    if len(medians) < 2 or min(medians.values()) <= 0:
        return list(values)
    whole = stdlib.median(values)
    return [value * whole / medians[name] for value, name in zip(values, machines, strict=True)]


def _on(machine: str, values: Sequence[float], machines: Sequence[str]) -> list[float]:
    return [value for value, name in zip(values, machines, strict=False) if name == machine]


def _have_ratios(strata: Strata) -> bool:
    return bool(strata) and min(min(theirs) for _, theirs in strata) > 0


def _ranked(strata: Strata) -> tuple[statistics.RankedStratum, ...]:
    """The strata, ranked as if no values were tied."""
    sizes = [(len(ours), len(ours) + len(theirs)) for ours, theirs in strata]
    return statistics.ranked_strata([(tuple(range(2, 2 * both + 1, 2)), ours) for ours, both in sizes])


def _ratios(strata: Strata) -> Weighted:
    """Sorted, of all pairs of a stratum, with the stratum's weight."""
    weights = zip(strata, _ranked(strata), strict=True)
    return sorted((x / y, ranked.weight) for (ours, theirs), ranked in weights for x in ours for y in theirs)


def _differences(strata: Strata) -> Weighted:
    weights = zip(strata, _ranked(strata), strict=True)
    return sorted((x - y, ranked.weight) for (ours, theirs), ranked in weights for x in ours for y in theirs)


def _middle(values: Weighted) -> tuple[float, float]:
    """The two ends of the weighted median, which are the same but where half of the weight lies on either side."""
    below_half = (sum(weight for _, weight in values) - 1) / 2
    return _beyond(below_half, values), _beyond(below_half, reversed(values))


def _beyond(cut: float, values: Iterable[tuple[float, int]]) -> float:
    """The first value at which the weight exceeds ``cut``."""
    passed = 0
    for value, weight in values:
        passed += weight
        if passed > cut:
            return value
    return math.nan


def _cut(strata: Strata, tail: float) -> float | None:
    """The weight of pairs up to which sums together have at most the probability ``tail``; None where not even the
    smallest has."""
    ranked = _ranked(strata)
    smallest = sum(r.weight * r.size * (r.size + 1) for r in ranked)
    counts = statistics.sums(ranked)
    if counts is None:
        reach = -stdlib.NormalDist().inv_cdf(tail) * math.sqrt(statistics.sum_variance(ranked))
        cut = statistics.expected_sum(ranked) - reach - statistics.half_step(ranked)
        return (cut - smallest) / 2 if cut >= smallest else None
    most, passed, found = tail * sum(counts.values()), 0, None
    for total in sorted(counts):
        passed += counts[total]
        if passed > most:
            break
        found = (total - smallest) / 2
    return found
