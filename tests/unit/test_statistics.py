from __future__ import annotations

import itertools
import math
import random
import statistics as stdlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsrig.stats import statistics
from dnsrig.stats.statistics import (
    FEWEST_REPEATS,
    Interval,
    bootstrap_interval,
    box,
    compare,
    holm,
    median_distribution,
    outlying,
    percent_of_mean,
    rank_test,
    ratio_interval,
    spread,
)

positive = st.floats(min_value=0.01, max_value=1e6)
repeats = st.lists(positive, min_size=FEWEST_REPEATS, max_size=10)


def brute_force_rank_test(a: list[float], b: list[float]) -> float:
    """All ways to split the pooled values, by the definition and nothing else."""
    pooled = a + b
    ranks = [sum(y < x for y in pooled) + (sum(y == x for y in pooled) + 1) / 2 for x in pooled]
    expected = len(a) * (len(pooled) + 1) / 2
    distance = abs(sum(ranks[: len(a)]) - expected)
    splits = list(itertools.combinations(ranks, len(a)))
    return sum(abs(sum(split) - expected) >= distance - 1e-9 for split in splits) / len(splits)


def test_spread_names_what_there_is() -> None:
    found = spread([3.0, 1.0, 8.0])
    assert found is not None
    assert (found.n, found.median, found.mean, found.low, found.high) == (3, 3.0, 4.0, 1.0, 8.0)
    assert spread([]) is None


@pytest.mark.parametrize("n", range(FEWEST_REPEATS))
def test_too_few_repeats_give_no_interval_and_no_p(n: int) -> None:
    few, enough = [float(i + 1) for i in range(n)], [1.0, 2.0, 3.0, 4.0, 5.0]
    assert bootstrap_interval(few) is None
    assert ratio_interval(few, enough) is None
    assert rank_test(few, enough) is None
    assert rank_test(enough, few) is None
    comparison = compare(few, enough, "lower")
    assert comparison.interval is None
    assert comparison.p is None
    assert comparison.change == "undecided"


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_median_distribution_is_that_of_all_resamples(n: int) -> None:
    values = [1.0, 2.0, 4.0, 7.0, 11.0, 16.0][:n]
    counted = Counter(stdlib.median(resample) for resample in itertools.product(values, repeat=n))
    exact = dict(median_distribution(values))
    assert exact.keys() == counted.keys()
    for value, count in counted.items():
        assert exact[value] == pytest.approx(count / n**n, abs=1e-12)


def test_five_repeats_give_their_range() -> None:
    # P(the median of a resample is the smallest) = P(Binomial(5, 1/5) >= 3) = 0.058 > 0.025.
    assert bootstrap_interval([1.0, 2.0, 3.0, 4.0, 5.0]) == Interval(1.0, 5.0, 0.95)


@given(repeats)
def test_an_interval_holds_the_median_and_lies_in_the_range(values: list[float]) -> None:
    interval = bootstrap_interval(values)
    assert interval is not None
    assert min(values) <= interval.low <= stdlib.median(values) <= interval.high <= max(values)


@given(repeats)
def test_less_confidence_gives_no_wider_interval(values: list[float]) -> None:
    wide, narrow = bootstrap_interval(values, 0.99), bootstrap_interval(values, 0.5)
    assert wide is not None
    assert narrow is not None
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@settings(max_examples=30)
@given(repeats, repeats)
def test_a_ratio_interval_turned_round_is_its_inverse(a: list[float], b: list[float]) -> None:
    one, other = ratio_interval(a, b), ratio_interval(b, a)
    assert one is not None
    assert other is not None
    assert one.low == pytest.approx(1 / other.high)
    assert one.high == pytest.approx(1 / other.low)


def test_a_baseline_at_zero_gives_no_ratio() -> None:
    assert ratio_interval([1.0] * 5, [0.0, 1.0, 1.0, 1.0, 1.0]) is None
    assert compare([1.0] * 5, [0.0] * 5, "lower").percent is None


@pytest.mark.parametrize(
    ("a", "b", "p"),
    [
        # Complete separation: two of the C(n+m, n) splits are as extreme.
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
        (range(10), range(10, 20), 2 / math.comb(20, 10)),
        # Tables of U: for n = m = 5 the two-sided 5 % point is U <= 2, with p = 8/252.
        ([1, 2, 3, 4, 7], [5, 6, 8, 9, 10], 8 / 252),
        # All alike: every split is as extreme as any other.
        ([1] * 5, [1] * 6, 1.0),
    ],
)
def test_known_rank_tests(a: list[int], b: list[int], p: float) -> None:
    assert rank_test(list(a), list(b)) == pytest.approx(p, abs=1e-12)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 6), min_size=5, max_size=6),
    st.lists(st.integers(0, 6), min_size=5, max_size=6),
)
def test_the_rank_test_agrees_with_brute_force_ties_included(a: list[int], b: list[int]) -> None:
    ours = rank_test(a, b)
    assert ours == pytest.approx(brute_force_rank_test([float(x) for x in a], [float(x) for x in b]))
    assert ours == rank_test(b, a)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("n", "m"), [(20, 20), (30, 30), (10, 50)])
@pytest.mark.parametrize("digits", [6, 0])
def test_many_values_are_tested_by_the_normal_distribution(
    monkeypatch: pytest.MonkeyPatch, seed: int, n: int, m: int, digits: int
) -> None:
    """Held against the exact test where both can be had; without digits, most values are tied."""
    made = random.Random(seed)
    a, b = ([round(made.gauss(shift, 2), digits) for _ in range(count)] for shift, count in ((0, n), (seed / 5, m)))
    exact = rank_test(a, b)
    monkeypatch.setattr(statistics, "LARGEST_EXACT", 0)
    assert rank_test(a, b) == pytest.approx(exact, rel=0.05, abs=0.003)
    assert rank_test(b, a) == pytest.approx(rank_test(a, b))


def test_hundreds_of_values_are_tested_at_once() -> None:
    low, high = [float(i) for i in range(300)], [float(i) for i in range(300, 600)]
    p = rank_test(low, high)
    assert p is not None and 0 < p < 1e-90
    assert rank_test([1.0] * 300, [1.0] * 300) == 1.0
    assert rank_test(low, low) == 1.0


def test_holm_of_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_a_p_and_keeps_the_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    by_p = [c for _, c in sorted(zip(p_values, corrected, strict=True))]
    assert by_p == sorted(by_p)


@given(repeats)
def test_a_variant_compared_with_itself_is_not_told_apart(values: list[float]) -> None:
    comparison = compare(values, values, "lower")
    assert comparison.percent == pytest.approx(100)
    assert comparison.difference == 0
    assert comparison.interval is not None
    assert comparison.interval.low <= 100 * (1 + 1e-9)
    assert comparison.interval.high >= 100 * (1 - 1e-9)
    assert comparison.change == "undecided"


@pytest.mark.parametrize(("better", "change"), [("lower", "better"), ("higher", "worse"), ("neither", "different")])
def test_a_change_is_judged_by_what_is_better(better: str, change: str) -> None:
    from dataclasses import replace

    comparison = compare([1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4], better)  # type: ignore[arg-type]
    assert comparison.change == "undecided", "not before it is corrected"
    assert replace(comparison, p_corrected=0.01).change == change
    assert replace(comparison, p_corrected=0.2).change == "undecided"


def test_a_box_has_the_quartiles_of_the_textbook() -> None:
    found = box([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found is not None
    assert (found.low, found.quarter, found.median, found.three_quarters, found.high) == (1, 2.25, 3.5, 4.75, 6)
    assert box([1.0, 2.0, 3.0, 4.0]) is None


@pytest.mark.parametrize(
    ("values", "apart"),
    [
        # Box 2..4, so the fences are at -1 and 7: on a fence is inside.
        ([1.0, 2.0, 3.0, 4.0, 7.0], []),
        ([1.0, 2.0, 3.0, 4.0, 7.01], [4]),
        ([-1.01, 2.0, 3.0, 4.0, 5.0], [0]),
        ([9.0, 1.0, 1.0, 1.0, 1.0], [0]),
        ([1.0, 1.0, 1.0, 9.0], []),
    ],
)
def test_outliers_lie_outside_tukeys_fences(values: list[float], apart: list[int]) -> None:
    assert outlying(values) == apart


@given(st.lists(st.integers(1, 1000), min_size=FEWEST_REPEATS, max_size=10))
def test_what_lies_apart_does_not_depend_on_the_unit(whole: list[int]) -> None:
    assert outlying(whole) == outlying([value * 2 for value in whole])
    assert 2 * len(outlying(whole)) <= len(whole), "the box holds half of them"


def test_percent_of_the_mean_is_that_of_the_slides() -> None:
    found = percent_of_mean([108.0, 114.0], [99.0, 101.0])
    assert found is not None
    assert (found.mean, found.half_range, found.n) == (pytest.approx(111), pytest.approx(3), 2)
    assert percent_of_mean([], [1.0]) is None
    assert percent_of_mean([1.0], []) is None
    assert percent_of_mean([1.0], [0.0, 0.0]) is None


@given(repeats)
def test_a_baseline_is_100_percent_of_itself(values: list[float]) -> None:
    found = percent_of_mean(values, values)
    assert found is not None
    assert found.mean == pytest.approx(100)
