"""Statistics of a handful of repeats: exact where that is possible, silent where it is not.

The trial is the unit, never the query: a value here is one figure of one trial. Nothing is dropped
as an outlier. Below ``FEWEST_REPEATS`` there are points and a range, and every function that would
have to invent more returns None.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

FEWEST_REPEATS = 5
"""Four against four give p = 2/70 = 0.029 at best, which no correction for several comparisons leaves below 0.05."""

ALPHA = 0.05
"""A difference counts as more than chance if its corrected p is below this."""

NEGLIGIBLE = 1e-9
"""Points of a bootstrap distribution lighter than this are left out: no quantile that we print sees them."""

LARGEST_EXACT = 60
"""Values on both sides together up to which the rank test is exact: 30 against 30 take 4 ms, and it goes with the
fourth power."""

MOST_SUMS = 100_000
"""Most sums of two joined strata, before equal ones are counted together: it takes 20 ms."""

FENCE = 1.5
"""Tukey's choice: of values that are normally distributed 0.7 % lie beyond it."""

Strata = Sequence[tuple[Sequence[float], Sequence[float]]]
"""For each machine, the values of both sides."""

Better = Literal["lower", "higher", "neither"]
Change = Literal["better", "worse", "different", "undecided"]
Bound = Literal["", "≥", "≤"]
"""Before a figure of which some repeats hit their limit or a ceiling: the true one is at least, or at most, this."""


@dataclass(frozen=True)
class Spread:
    """``n`` values in five numbers; ``low`` and ``high`` are the smallest and the largest of them."""

    n: int
    median: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Interval:
    """A confidence interval, in the unit of the values."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Box:
    """A box plot's five numbers: the ends are the smallest and the largest value, as no value is left out of it."""

    low: float
    quarter: float
    median: float
    three_quarters: float
    high: float


@dataclass(frozen=True)
class PercentSpread:
    """Repeats in percent of another's mean: ``111 ±3 %``. ``half_range`` is half of largest less smallest."""

    mean: float
    half_range: float
    n: int


@dataclass(frozen=True)
class Comparison:
    """A variant relative to the baseline.

    ``percent`` is 100 × the ratio of medians, ``interval`` the interval of the percentage; ``difference`` is the
    variant's median less the baseline's, in the unit of the values. ``p`` is of the rank test, None where all values
    are the same; ``p_corrected`` the same after correction for the number of comparisons, filled in by who knows it.
    """

    percent: float | None
    difference: float | None
    interval: Interval | None
    p: float | None
    better: Better
    p_corrected: float | None = None
    bound: Bound = ""
    """Of ``percent``, where one of the medians is only known to be at least something (`samples`)."""
    of_mean: PercentSpread | None = None
    """Each repeat of the variant in percent of the baseline's mean: the other estimate, which a few repeats can
    decide. None where not every repeat has a figure."""
    between: tuple[float, float] | None = None
    """``percent`` at either pair of ends, where the values themselves are known between ends (`samples`)."""
    by_rounds: bool = False
    """Whether ``percent``, ``interval`` and ``p`` are of the ratios within each round (`rounds`), not of all repeats
    together."""
    by_machines: bool = False
    """Whether they are of the ratios within each machine (`machines`)."""

    @property
    def change(self) -> Change:
        """What may be said: nothing, unless the corrected p is below ``ALPHA`` and 100 % is out of the interval."""
        if self.percent is None or self.interval is None or self.p_corrected is None:
            return "undecided"
        if self.p_corrected >= ALPHA or self.interval.low <= 100 <= self.interval.high:
            return "undecided"
        if self.better == "neither":
            return "different"
        return "better" if (self.percent < 100) == (self.better == "lower") else "worse"


Exact = Callable[[Sequence[float], Sequence[float], Better], Comparison]
"""Compares exact values."""


def spread(values: Sequence[float]) -> Spread | None:
    """The five numbers of ``values``; None of nothing."""
    if not values:
        return None
    return Spread(len(values), statistics.median(values), statistics.fmean(values), min(values), max(values))


def box(values: Sequence[float]) -> Box | None:
    """The box of ``values``; None below ``FEWEST_REPEATS``, where its quarters would be the points themselves.

    Quartiles by linear interpolation between order statistics, the smallest value being 0 % and the largest 100 %
    (Hyndman and Fan, Sample quantiles in statistical packages, 1996, definition 7).
    """
    if len(values) < FEWEST_REPEATS:
        return None
    quarter, median, three_quarters = statistics.quantiles(values, n=4, method="inclusive")
    return Box(min(values), quarter, median, three_quarters, max(values))


def outlying(values: Sequence[float]) -> list[int]:
    """Which of ``values``, by index, lie outside the box by more than ``FENCE`` times its height.

    Tukey, Exploratory Data Analysis (1977). To be looked at, not to be left out. None below ``FEWEST_REPEATS``.
    """
    found = box(values)
    if found is None:
        return []
    reach = FENCE * (found.three_quarters - found.quarter)
    low, high = found.quarter - reach, found.three_quarters + reach
    return [index for index, value in enumerate(values) if not low <= value <= high]


def percent_of_mean(values: Sequence[float], baseline: Sequence[float]) -> PercentSpread | None:
    """``values`` in percent of the mean of ``baseline``; None of nothing, of what has no mean, or where the baseline's
    is not above zero."""
    if not values or not baseline or not all(map(math.isfinite, (*values, *baseline))):
        return None
    if (whole := statistics.fmean(baseline)) <= 0:
        return None
    mean, half_range = statistics.fmean(values), (max(values) - min(values)) / 2
    return PercentSpread(100 * mean / whole, 100 * half_range / whole, len(values))


def bootstrap_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Percentile bootstrap interval of the median; None below ``FEWEST_REPEATS``.

    Not simulated: the distribution of a resample's median is known in closed form (see
    ``median_distribution``), so the interval has no seed and no error of its own. Percentile method:
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. With five repeats
    it is their range, which covers the true median with 94 %.
    """
    if len(values) < FEWEST_REPEATS:
        return None
    return _central_interval(median_distribution(values), confidence)


def ratio_interval(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Percentile bootstrap interval of median(a) / median(b), both resampled independently.

    None when either has fewer than ``FEWEST_REPEATS`` values or ``b`` has one that is not above zero.
    """
    if min(len(a), len(b)) < FEWEST_REPEATS or min(b) <= 0:
        return None
    ratios: defaultdict[float, float] = defaultdict(float)
    below = median_distribution(b)
    for x, weight_x in median_distribution(a):
        for y, weight_y in below:
            ratios[x / y] += weight_x * weight_y
    return _central_interval(sorted(ratios.items()), confidence)


def median_distribution(values: Sequence[float]) -> list[tuple[float, float]]:
    """The exact distribution of the median of a bootstrap resample, as sorted (median, probability).

    Efron, Bootstrap methods: another look at the jackknife (1979), section 3, has it for odd sizes; for even
    sizes the two middle values of the resample are taken jointly, by the same counting.
    """
    ordered = sorted(values)
    n = len(ordered)
    weights: defaultdict[float, float] = defaultdict(float)
    if n % 2:
        middle = n // 2 + 1
        for i, value in enumerate(ordered, start=1):
            weights[value] += _at_least(n, i / n, middle) - _at_least(n, (i - 1) / n, middle)
    else:
        half = n // 2
        ways = math.comb(n, half)
        for i, low in enumerate(ordered, start=1):
            lower_half = (i / n) ** half - ((i - 1) / n) ** half
            apart = 0.0
            for j in range(i + 1, n + 1):
                upper_half = ((n - j + 1) / n) ** half - ((n - j) / n) ** half
                weights[(low + ordered[j - 1]) / 2] += ways * lower_half * upper_half
                apart += ways * lower_half * upper_half
            both_here = _at_least(n, i / n, half) - _at_least(n, (i - 1) / n, half) - apart
            weights[low] += both_here
    return sorted((value, weight) for value, weight in weights.items() if weight > NEGLIGIBLE)


def rank_test(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Two-sided p of the Wilcoxon-Mann-Whitney test, which is van Elteren's with one stratum."""
    return stratified_rank_test([(a, b)])


def stratified_rank_test(strata: Strata) -> float | None:
    """Two-sided p of van Elteren's test; None below ``FEWEST_REPEATS`` values on either side, over all strata.

    The statistic adds the rank sums of the first side in each stratum, over the stratum's number of values and one (van
    Elteren, On the combination of independent two sample tests of Wilcoxon, 1960). A stratum without the one or the
    other says nothing. Ties get midranks. Up to ``LARGEST_EXACT`` values the distribution is that of these very ranks
    over all ways to split each stratum (Streitberg and Röhmel, Exact distributions for permutation and rank tests: the
    shift algorithm, 1986). Two-sided: every split whose sum lies at least as far from its expectation as the one seen.
    With more values, or where strata of many sizes have more than ``MOST_SUMS`` sums, it is the normal distribution
    with the variance of tied ranks and a continuity correction (Lehmann, Nonparametrics: statistical methods based on
    ranks, 1975, chapters 1 and 3).
    """
    both = [(a, b) for a, b in strata if a and b]
    if min(sum(len(a) for a, _ in both), sum(len(b) for _, b in both)) < FEWEST_REPEATS:
        return None
    ranks = [doubled_midranks([*a, *b]) for a, b in both]
    ranked = ranked_strata([(tuple(sorted(all_)), len(a)) for all_, (a, _) in zip(ranks, both, strict=True)])
    seen = sum(r.weight * sum(all_[: r.size]) for r, all_ in zip(ranked, ranks, strict=True))
    expected = expected_sum(ranked)
    distance = abs(seen - expected)
    counts = sums(ranked)
    if counts is None:
        beyond = distance - half_step(ranked)
        return math.erfc(beyond / math.sqrt(2 * sum_variance(ranked))) if beyond > 0 else 1.0
    extreme = sum(count for total, count in counts.items() if abs(total - expected) >= distance)
    return extreme / sum(counts.values())


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): p in the order given, so that any of them is wrong with at most alpha."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for position, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[index]))
        corrected[index] = largest
    return corrected


def compare(variant: Sequence[float], baseline: Sequence[float], better: Better) -> Comparison:
    """``variant`` in percent of ``baseline``: the ratio of medians, with what the number of repeats allows."""
    ours, theirs = spread(variant), spread(baseline)
    if ours is None or theirs is None or theirs.median <= 0:
        return nothing_to_compare(better)
    ratio = ratio_interval(variant, baseline)
    interval = Interval(100 * ratio.low, 100 * ratio.high, ratio.confidence) if ratio else None
    return Comparison(
        percent=100 * ours.median / theirs.median,
        difference=ours.median - theirs.median,
        interval=interval,
        p=rank_test(variant, baseline) if len({*variant, *baseline}) > 1 else None,
        better=better,
        of_mean=percent_of_mean(variant, baseline),
    )


def nothing_to_compare(better: Better) -> Comparison:
    """A comparison that was wanted and has no figures."""
    return Comparison(None, None, None, None, better)


def _at_least(n: int, probability: float, k: int) -> float:
    """P(at least ``k`` successes in ``n``)."""
    return math.fsum(math.comb(n, i) * probability**i * (1 - probability) ** (n - i) for i in range(k, n + 1))


def _central_interval(distribution: Sequence[tuple[float, float]], confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    return Interval(_quantile(distribution, tail), _quantile(distribution[::-1], tail), confidence)


def _quantile(distribution: Sequence[tuple[float, float]], tail: float) -> float:
    """The first value at which the weight from the front exceeds ``tail``."""
    passed = 0.0
    for value, weight in distribution:
        passed += weight
        if passed > tail:
            return value
    return distribution[-1][0]


def doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the midrank of each value: whole numbers even with ties."""
    counts = Counter(values)
    doubled, below = {}, 0
    for value in sorted(counts):
        doubled[value] = 2 * below + counts[value] + 1
        below += counts[value]
    return [doubled[value] for value in values]


@dataclass(frozen=True)
class RankedStratum:
    """A stratum of van Elteren's test, in whole numbers, so that no tie is decided by rounding."""

    ranks: tuple[int, ...]
    """The doubled midranks of both sides together, sorted."""
    size: int
    """Number of values of the first side."""
    weight: int
    """In proportion to 1 / (number of values + 1)."""


def ranked_strata(strata: Sequence[tuple[tuple[int, ...], int]]) -> tuple[RankedStratum, ...]:
    """Strata from their doubled midranks, sorted, and the size of the first side."""
    common = math.lcm(*(len(ranks) + 1 for ranks, _ in strata))
    return tuple(RankedStratum(ranks, size, common // (len(ranks) + 1)) for ranks, size in strata)


def expected_sum(strata: Sequence[RankedStratum]) -> int:
    return sum(s.weight * s.size * (len(s.ranks) + 1) for s in strata)


def sum_variance(strata: Sequence[RankedStratum]) -> float:
    return sum(s.weight**2 * _variance(s.ranks, s.size) for s in strata)


def half_step(strata: Sequence[RankedStratum]) -> int:
    """Half of what lies between two sums, where no ranks are tied: the continuity correction."""
    return math.gcd(*(s.weight for s in strata))


def sums(strata: tuple[RankedStratum, ...]) -> dict[int, int] | None:
    """In how many ways each weighted sum of the first side's ranks comes about; None where there is too much to
    count."""
    return _joined(strata) if sum(len(s.ranks) for s in strata) <= LARGEST_EXACT else None


@lru_cache(maxsize=64)
def _joined(strata: tuple[RankedStratum, ...]) -> dict[int, int] | None:
    joined = {0: 1}
    for stratum in strata:
        counts = [(total, count) for total, count in enumerate(_rank_sums(stratum.ranks, stratum.size)) if count]
        if len(joined) * len(counts) > MOST_SUMS:
            return None
        before, joined = joined, defaultdict(int)
        for total, count in counts:
            for sum_, ways in before.items():
                joined[sum_ + stratum.weight * total] += ways * count
    return joined


def _variance(ranks: Sequence[int], size: int) -> float:
    """Variance of the sum of ``size`` of these doubled midranks."""
    n = len(ranks)
    ties = sum(count**3 - count for count in Counter(ranks).values())
    return size * (n - size) / 3 * (n + 1 - ties / (n * (n - 1)))


@lru_cache(maxsize=64)
def _rank_sums(ranks: tuple[int, ...], size: int) -> list[int]:
    """How many ways there are to choose ``size`` of ``ranks`` with each sum; index is the sum.

    All counts of one size are in one whole number, each in bits of its own: Python adds and shifts them at once.
    """
    width = 8 * -(-math.comb(len(ranks), size).bit_length() // 8)
    ways = [1] + [0] * size
    for rank in ranks:
        for chosen in range(size, 0, -1):
            ways[chosen] += ways[chosen - 1] << width * rank
    count, each = sum(ranks) + 1, width // 8
    packed = ways[size].to_bytes(count * each, "little")
    return [int.from_bytes(packed[at : at + each], "little") for at in range(0, count * each, each)]
