"""Change points: a small example counted by hand, what holds for all histories, and what must be found."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsrig.stats.change_points import ChangePoint, Segment, _p_value, change_points, distances_within
from dnsrig.stats.statistics import doubled_midranks

Histories = list[list[float]]
histories = st.lists(st.lists(st.integers(0, 30).map(float), min_size=1, max_size=6), min_size=1, max_size=6)


def level(value: float, trials: int = 5, seed: int = 1) -> list[float]:
    dice = random.Random(f"{value} {seed}")
    return [dice.gauss(value, 1) for _ in range(trials)]


def energy_statistic(left: list[int], right: list[int]) -> float:
    """As Matteson and James write it (2014, equations 5 and 6)."""
    n, m = len(left), len(right)
    between = sum(abs(x - y) for x in left for y in right)
    within_left = sum(abs(x - y) for x, y in itertools.combinations(left, 2))
    within_right = sum(abs(x - y) for x, y in itertools.combinations(right, 2))
    energy = 2 / (m * n) * between - within_left / math.comb(n, 2) - within_right / math.comb(m, 2)
    return m * n / (m + n) * energy


def best_by_definition(groups: Histories, least: int) -> float:
    ranks = iter(doubled_midranks([value for group in groups for value in group]))
    ranked = [[next(ranks) for _ in group] for group in groups]
    found = [0.0]
    for at in range(1, len(groups)):
        for end in range(at + 1, len(groups) + 1):
            left, right = [*itertools.chain(*ranked[:at])], [*itertools.chain(*ranked[at:end])]
            if min(len(left), len(right)) >= least:
                found.append(energy_statistic(left, right))
    return max(found)


def test_a_small_example_counted_by_hand() -> None:
    """Of 1, 2 | 3, 4 the doubled ranks are 2, 4 | 6, 8: within either 2, between them 4 + 6 + 2 + 4 = 16.

    The energy is 2 × 16 / 4 - 2 - 2 = 4, times 2 × 2 / 4 it stays 4. Of the six ways to deal four trials to two
    versions, two give 4: these and their exchange. So p is a third.
    """
    assert distances_within([2, 4, 6, 8], [0, 0, 1, 1], 2) == [[0, 2, 20], [0, 0, 2], [0, 0, 0]]
    assert Segment(0, [[1, 2], [3, 4]], 2).best.statistic == 4
    (found,) = change_points([[1, 2], [3, 4]], least=2, alpha=0.5, permutations=5999)
    assert found.at == 1
    assert found.p == pytest.approx(1 / 3, abs=0.03)


def test_a_version_that_the_next_takes_back_is_two_changes() -> None:
    history = [level(100, seed=1), level(100, seed=2), level(120), level(100, seed=3), level(100, seed=4)]
    assert [change.at for change in change_points(history)] == [2, 3]


@pytest.mark.parametrize("newest", [90, 110])
def test_a_change_in_the_newest_version_is_found(newest: float) -> None:
    history = [*(level(100, seed=number) for number in range(11)), level(newest)]
    assert [change.at for change in change_points(history)] == [11]


def test_nothing_is_found_where_all_trials_are_the_same() -> None:
    assert change_points([[1.0] * 5] * 8) == []
    assert change_points([]) == []
    assert change_points([[1.0, 2.0, 3.0, 4.0, 5.0]]) == []


def test_fewer_trials_than_the_least_are_no_segment() -> None:
    history = [level(100, 3, 1), level(100, 3, 2), level(200, 3), level(200, 3, 2)]
    assert [change.at for change in change_points(history, least=6)] == [2]
    assert change_points(history, least=7) == []
    assert change_points([level(100, 2), level(200, 2)]) == []


@pytest.mark.parametrize("wrong", [[[]], [[1.0], []], [[1.0]] * 1001])
def test_what_is_no_history_is_refused(wrong: Histories) -> None:
    with pytest.raises(ValueError, match="a history has"):
        change_points(wrong)
    with pytest.raises(ValueError, match="at least two"):
        change_points([[1.0], [2.0]], least=1)


@given(histories, st.integers(2, 6))
@settings(deadline=None)
def test_the_statistic_is_that_of_the_definition(history: Histories, least: int) -> None:
    assert Segment(0, history, least).best.statistic == pytest.approx(best_by_definition(history, least), abs=1e-9)


@given(histories, st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_only_the_order_of_values_counts(history: Histories, seed: int) -> None:
    """Not their unit, nor the order in which the trials of a version were measured."""

    def found(changed: Histories) -> list[ChangePoint]:
        return change_points(changed, least=2, alpha=0.3, permutations=49, seed=seed)

    assert found([[math.exp(value) for value in group] for group in history]) == found(history)
    assert found([sorted(group, reverse=True) for group in history]) == found(history)


@given(histories, st.integers(2, 5))
@settings(deadline=None, max_examples=30)
def test_segments_have_at_least_so_many_trials(history: Histories, least: int) -> None:
    changes = change_points(history, least=least, alpha=0.5, permutations=49)
    places = [0, *(change.at for change in changes), len(history)]
    assert places == sorted(set(places))
    if changes:
        assert all(sum(map(len, history[a:b])) >= least for a, b in itertools.pairwise(places))


def test_chance_alone_is_told_about_as_often_as_alpha_says() -> None:
    """Of 100 histories without a change, with alpha 0.1: at most 20; more would have a probability below 0.001."""
    dice = random.Random(7)
    told = 0
    for _ in range(100):
        history = [[dice.gauss(100, 5) for _ in range(5)] for _ in range(6)]
        told += bool(change_points(history, alpha=0.1, permutations=99))
    assert told <= 20


def test_p_counts_the_order_that_was_seen_as_one_of_the_orders() -> None:
    """Its size is known always, or never."""
    equal, dice = [Segment(0, [[1.0, 1.0], [1.0, 1.0]], 2)], random.Random(1)
    assert _p_value(equal, 0.0, 0.05, 99, dice) == 1.0
    assert _p_value(equal, 0.0, 0.5, 5, dice) == 1.0
    assert _p_value(equal, math.inf, 0.05, 99, dice) == 1 / 100
    assert _p_value(equal, math.inf, 0.05, 1, dice) == 1 / 2


def test_halves_of_a_segment_begin_where_it_begins_and_at_its_change() -> None:
    before, after = Segment(3, [[1.0, 2.0], [3.0, 4.0], [3.0, 4.0]], 2).halves()
    assert (before.first, after.first) == (3, 4)


def test_a_history_may_have_a_thousand_versions() -> None:
    assert change_points([[1.0]] * 1000, least=600) == []


def test_a_change_at_alpha_is_kept_and_one_above_is_not() -> None:
    """With one permutation, in which the change is never as large, p is a half."""
    history = [[float(n) for n in range(10)], [float(n) for n in range(10, 20)]]
    assert change_points(history, alpha=0.5, permutations=1) == [ChangePoint(1, 0.5)]
    assert change_points(history, alpha=0.49, permutations=1) == []
