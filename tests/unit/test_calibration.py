"""The smallest difference that repeats can show: held against the project's own comparison, on drawn repeats."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from dnsrig.comparison import calibration
from dnsrig.comparison.calibration import smallest_differences, smallest_ratio, told_from
from dnsrig.stats import rounds, significance, statistics

NOISY = random.Random(5)
VALUES = [100 * math.exp(NOISY.gauss(0, 0.05)) for _ in range(10)]


def told(variant: list[float], baseline: list[float]) -> bool:
    """As a report tells it, of one comparison."""
    found = statistics.compare(variant, baseline, "lower")
    if significance.by_rounds(len(variant), 1):
        found = rounds.compared(list(zip(variant, baseline, strict=True)), found)
    return found.p is not None and replace(found, p_corrected=found.p).change == "worse"


@pytest.mark.parametrize("repeats", [5, 7, 8, 10])
def test_the_ratio_is_where_the_own_comparison_turns(repeats: int) -> None:
    noise = random.Random(repeats)
    for _ in range(20):
        a, b = ([math.exp(noise.gauss(0, 0.1)) for _ in range(repeats)] for _ in range(2))
        ratio = told_from(a, b)
        assert told([1.001 * ratio * value for value in a], b)
        assert not told([0.999 * ratio * value for value in a], b)


@pytest.mark.parametrize("repeats", [5, 10])
def test_it_is_told_four_times_in_five(repeats: int) -> None:
    """By the own comparison, in data sets that were not drawn to find it. Ten values make steps, so it is told in at
    least so many just above the ratio, and in at most so many just below."""
    ratio = smallest_ratio(VALUES, repeats, seed=1)
    assert ratio is not None
    noise, sets = random.Random(99), 200
    pool = calibration._pool(VALUES)
    sides = [[calibration._draw(pool, repeats, noise) for _ in range(2)] for _ in range(sets)]

    def share(of: float) -> float:
        return sum(told([of * value for value in a], b) for a, b in sides) / sets

    by_chance = 3 * math.sqrt(0.8 * 0.2 / sets)
    assert share(1.001 * ratio) >= calibration.POWER - by_chance
    assert share(0.999 * ratio) <= calibration.POWER + by_chance


def test_more_repeats_show_less_and_more_spread_hides_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "DATA_SETS_LEFT_OUT", 20)
    monkeypatch.setattr(calibration, "REPEATS", (3, 5, 10, 20))
    found = {each.repeats: each for each in smallest_differences(VALUES, seed=1)}
    assert found[3].percent is None, "no test of three against three can tell anything"
    assert found[5].percent > found[10].percent > found[20].percent > 0  # type: ignore[operator]
    assert all(e.low is not None and e.low <= e.high for n, e in found.items() if n > 3)  # type: ignore[operator]
    wide = [value**2 / 100 for value in VALUES]
    assert smallest_ratio(wide, 10, seed=1) == pytest.approx(smallest_ratio(VALUES, 10, seed=1) ** 2)  # type: ignore[operator]


def test_the_same_seed_finds_the_same_and_the_unit_does_not_matter() -> None:
    assert smallest_ratio(VALUES, 10, seed=7) == smallest_ratio(VALUES, 10, seed=7)
    assert smallest_ratio(VALUES, 10, seed=7) != smallest_ratio(VALUES, 10, seed=8)
    thousandth = [value / 1000 for value in VALUES]
    assert smallest_ratio(thousandth, 10, seed=7) == pytest.approx(smallest_ratio(VALUES, 10, seed=7))


@pytest.mark.parametrize("values", [VALUES[:4], [0.0, *VALUES], []])
def test_of_too_little_nothing_is_said(values: list[float]) -> None:
    assert smallest_ratio(values, 10, seed=1) is None


def test_the_range_of_figures_leaves_out_what_is_missing() -> None:
    found = calibration.measured([3.0, None, 1.0, 2.0])
    assert found is not None and (found.median, found.low, found.high, found.trials) == (2.0, 1.0, 3.0, 3)
    assert calibration.measured([None]) is None


@pytest.mark.parametrize(("power", "place"), [(0.1, 0), (0.11, 1), (0.5, 4), (0.8, 7), (1.0, 9)])
def test_the_ratio_is_found_in_as_many_data_sets_as_the_power_says(power: float, place: int) -> None:
    pool, noise = calibration._pool(VALUES), random.Random("1 5")
    ratios = sorted(told_from(calibration._draw(pool, 5, noise), calibration._draw(pool, 5, noise)) for _ in range(10))
    assert smallest_ratio(VALUES, 5, seed=1, data_sets=10, power=power) == ratios[place]


def test_draws_are_as_wide_as_all_trials_and_not_as_those_that_were_made() -> None:
    """1 and 100 lie half of log 100 from their middle; the root of 2 / (2 - 1) makes them wider."""
    wider = math.log(10) * math.sqrt(2)
    assert calibration._pool([1.0, 100.0]) == pytest.approx([-wider, wider])


@pytest.mark.parametrize(("ratio", "percent"), [(1.0, 0.0), (1.05, 5.0), (1.012345, 1.23), (2.0, 100.0)])
def test_a_smallest_difference_is_in_percent(ratio: float, percent: float) -> None:
    assert calibration._percent(ratio) == percent
