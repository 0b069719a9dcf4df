"""Distributions of latency: ranks and means against what is known by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.runs.latency import Histogram, merge

counted = st.dictionaries(st.integers(0, 2047), st.integers(1, 50), min_size=1, max_size=40)
"""Values that are kept exactly."""


@given(counted, st.floats(0, 100, allow_nan=False))
def test_a_percentile_is_the_smallest_that_enough_do_not_exceed(found: dict[int, int], percent: float) -> None:
    values = sorted(value for value, count in found.items() for _ in range(count))
    answer = Histogram.of(found).percentile(percent)
    at_or_below = [sum(v <= value for v in values) for value in values]
    # The rank in whole numbers; a rank of a float that is a hair off is not what is asked here.
    exact = percent / 100 * len(values)
    if abs(exact - round(exact)) > 1e-6:
        assert answer == next(v for v, n in zip(values, at_or_below) if n >= math.ceil(exact))


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1), (0.1, 1), (50, 500), (90, 900), (99, 990), (99.9, 999), (99.99, 1000), (100, 1000)]
)
def test_ranks_are_exact_where_a_float_is_not(percent: float, value: int) -> None:
    assert Histogram.of(dict.fromkeys(range(1, 1001), 1)).percentile(percent) == value


@given(counted, counted)
def test_merging_counts_all(one: dict[int, int], other: dict[int, int]) -> None:
    both = Histogram.of(one) + Histogram.of(other)
    assert both.total == sum(one.values()) + sum(other.values())
    assert both == merge([Histogram.of(other), Histogram.of(one)])
    assert both.mean_ns == pytest.approx(
        sum(value * count for found in (one, other) for value, count in found.items()) / both.total
    )


@given(counted, st.lists(st.floats(0, 100, allow_nan=False), max_size=9))
def test_many_percentiles_are_those_asked_one_by_one(found: dict[int, int], percents: list[float]) -> None:
    histogram = Histogram.of(found)
    assert histogram.percentiles(percents) == [histogram.percentile(percent) for percent in percents]


def test_of_nothing_there_is_nothing() -> None:
    empty = Histogram([], [])
    assert (empty.total, empty.min_ns, empty.mean_ns, empty.max_ns) == (0, None, None, None)
    assert empty.percentile(50) is None
    assert (empty + empty).total == 0


def test_a_stall_of_a_fifth_of_each_second() -> None:
    """1,000 queries a second at even distances, all answered at once but in the first 200 ms, which wait for their end.

    By hand: query i of a second waits 200 - i ms for i < 200, so a fifth of the queries wait, evenly from 1 to 200 ms.
    """
    due = Histogram.of({**{(200 - i) * 1_000_000: 60 for i in range(200)}, 10_000: 60 * 800})
    assert due.percentile(80) == 10_000
    for percent, waited_ms in ((80.1, 1), (90, 100), (95, 150), (99, 190), (99.9, 199), (100, 200)):
        assert due.percentile(percent) == waited_ms * 1_000_000
    assert due.mean_ns == pytest.approx(0.2 * 100.5e6 + 0.8 * 10e3, rel=1e-3)


def test_a_large_value_counts_for_a_range_of_values() -> None:
    """Up to 2,047 each value is kept; up to 4,095 two are counted as one, up to 8,191 four."""
    found = Histogram.of({5: 1, 2047: 2, 4095: 3, 8191: 4})
    assert list(found.buckets()) == [(5, 5, 1), (2047, 2047, 2), (4094, 4095, 3), (8188, 8191, 4)]
    assert found.mean_ns == (5 + 2 * 2047 + 3 * 4095 + 4 * 8190) / 10, "of two values the upper one is the middle"
    assert (Histogram.of({8191: 1}).min_ns, Histogram.of({8191: 1}).max_ns) == (8188, 8191)
    assert Histogram.of({2047: 1, 9: 0}) == Histogram([2047], [1])
