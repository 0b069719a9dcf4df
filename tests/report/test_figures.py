from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dnsrig
from dnsrig.report import figures
from dnsrig.stats.statistics import Interval, PercentSpread, Spread, compare, spread
from dnsrig.text import digits


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.5408, "s", "2.54 s"),
        (181.24, "s", "181 s"),
        (0.0005, "s", "0.500 ms"),
        (0.00005, "s", "50.0 µs"),
        (0.0254, "s", "25.4 ms"),
        (0, "s", "0 s"),
        (28232, "sockets", "28,232 sockets"),
        (28232, "1", "28,232"),
        (38_100_000, "B", "38.1 MB"),
        (900, "B", "900 B"),
        (5.8728, "ms", "5.87 ms"),
        (None, "s", "–"),
        (float("nan"), "s", "–"),
        (float("inf"), "s", "–"),
    ],
)
def test_a_figure_has_three_digits_and_its_unit(value: float | None, unit: str, text: str) -> None:
    assert figures.figure(value, unit) == text


@pytest.mark.parametrize(
    ("values", "censored", "text"),
    [
        ([2.2649, 2.5408, 2.8112], False, "2.54 s [2.26..2.81]"),
        ([2.5408], False, "2.54 s"),
        ([2.5, 2.5], False, "2.50 s [±0]"),
        ([2.5, 3.0, 60.0], True, "≥ 3.00 s [2.50..≥60.0]"),
        ([60.0], True, "≥ 60.0 s"),
        ([60.0, 60.0, 60.01], True, "≥ 60.0 s"),
        ([], False, "–"),
    ],
)
def test_a_spread_shows_median_and_range(values: list[float], censored: bool, text: str) -> None:
    assert figures.spread(spread(values), "s", censored=censored) == text


def test_bytes_of_a_spread_share_one_prefix() -> None:
    assert figures.spread(Spread(3, 2e6, 2e6, 9e5, 3e6), "B") == "2.00 MB [0.90..3.00]"


def test_percent_has_its_interval_when_there_is_one() -> None:
    assert figures.percent(compare([1.0, 1.1], [2.0, 2.2], "lower")) == "50.0 %"
    found = compare([1.0] * 5, [2.0] * 5, "lower")
    assert (figures.percent(found), figures.interval(found)) == ("50.0 %", "[50.0..50.0]")
    assert figures.percent(replace(found, bound="≤")) == "≤ 50.0 %"
    assert figures.percent(replace(found, between=(40.0, 50.0))) == "40.0..50.0 %"
    assert figures.percent(None) == "–"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text, déjà vu, 漢字", "plain text, déjà vu, 漢字"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("zone\u202egnp.example", "zone\\u202egnp.example"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\nbreak\ttab", "line\\x0abreak\\x09tab"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_acts_is_written_out(raw: str, shown: str) -> None:
    assert figures.visible(raw) == shown


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in figures.visible(text))


def test_endless_text_is_cut_and_says_so() -> None:
    shown = figures.visible("x" * 1_000_000)
    assert len(shown) < 3_000
    assert "1,000,000 characters" in shown


@pytest.mark.parametrize(
    ("mean", "half_range", "n", "text"),
    [
        (111.2, 3.4, 5, "111 ±3 %"),
        (9.04, 8.4, 5, "9 ±8 %"),
        (100.0, 64.2, 10, "100 ±64 %"),
        (100.0, 0.62, 10, "100.0 ±0.6 %"),
        (100.0, 0.0, 5, "100 ±0 %"),
        (100.0, 1e-9, 5, "100.000 ±0.000 %"),
        (111.2, 0.0, 1, "111 %"),
        (2418.0, 120.0, 5, "2,418 ±120 %"),
    ],
)
def test_percent_of_the_baseline_has_the_digits_of_its_spread(
    mean: float, half_range: float, n: int, text: str
) -> None:
    assert figures.percent_spread(PercentSpread(mean, half_range, n)) == text
    assert figures.percent_spread(None) == "–"


@pytest.mark.parametrize(
    ("value", "significant", "text"),
    [
        (2684.0, 3, "2,684"),
        (1000.0, 3, "1,000"),
        (1e6, 3, "1,000,000"),
        (100.0, 2, "100"),
        (99.96, 3, "100"),
        (2.5, 3, "2.5"),
        (0.0123456, 3, "0.0123"),
        (0.00001, 3, "0.00001"),
        (-1234.5, 4, "-1,234"),
        (0.0, 3, "0"),
        (float("inf"), 3, "inf"),
    ],
)
def test_digits_without_an_exponent(value: float, significant: int, text: str) -> None:
    assert digits(value, significant) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 6))
def test_no_number_has_an_exponent(value: float, significant: int) -> None:
    assert not set(digits(value, significant)) - set("-0123456789.,")


def test_no_sentence_writes_a_number_with_an_exponent() -> None:
    """``:.3g`` makes 2.68e+03 of 2,684. One or two digits are for probabilities, which are at most 1."""
    sources = Path(dnsrig.__file__).parent.rglob("*.py")
    found = {path.name: re.findall(r"\{[^{}]*:,?\.[3-8]g\}", path.read_text()) for path in sources}
    assert not {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (100 / 49, "1/49 of before"),
        (10.0, "1/10 of before"),
        (88.53, "88.5 % of before"),
        (300.0, "300 % of before"),
        (1230.0, "12 times before"),
        (0.0, "0 % of before"),
    ],
)
def test_a_change_is_no_percentage_where_nobody_thinks_in_percent(percent: float, text: str) -> None:
    compared = replace(compare([1.0] * 5, [1.0] * 5, "lower"), percent=percent)
    assert figures.of_before(compared) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.1, "s", "0.100 s"),
        (0.0999, "s", "99.9 ms"),
        (0.00025, "s", "0.250 ms"),
        (0.000099, "s", "99.0 µs"),
        (-0.05, "s", "-50.0 ms"),
        (999, "B", "999 B"),
        (1000, "B", "1.00 kB"),
        (1e6, "bytes", "1.00 MB"),
        (1e9, "B/s", "1.00 GB/s"),
        (2.5e12, "bytes/s", "2.50 TB/s"),
        (5, "%", "5.00 %"),
        (100, "%", "100 %"),
        (7, "ms", "7.00 ms"),
        (7, "sockets", "7 sockets"),
        (0.5, "sockets", "0.500 sockets"),
        (12.5, "", "12.5"),
    ],
)
def test_a_unit_begins_where_the_smaller_one_ends(value: float, unit: str, text: str) -> None:
    assert figures.figure(value, unit) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, "–"),
        (0.0, "< 0.001"),
        (0.00099, "< 0.001"),
        (0.001, "0.001"),
        (0.0504, "0.050"),
        (0.099, "0.099"),
        (0.1, "0.10"),
        (1.0, "1.00"),
    ],
)
def test_a_small_p_has_more_digits(p: float | None, text: str) -> None:
    assert figures.p_value(p) == text


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (0.05, "0.05 %"),
        (9.72, "9.7 %"),
        (9.94, "9.9 %"),
        (10, "10 %"),
        (899, "899 %"),
        (900, "10 times"),
        (6100, "62 times"),
        (12_345, "120 times"),
    ],
)
def test_how_much_slower_has_two_digits(percent: float, text: str) -> None:
    assert figures.slower(percent) == text


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (None, "–"),
        (0.5, "1/200 of before"),
        (10.1, "10.1 % of before"),
        (999.0, "999 % of before"),
        (1000.0, "10 times before"),
    ],
)
def test_a_change_is_a_percentage_between_a_tenth_and_ten_times(percent: float | None, text: str) -> None:
    compared = replace(compare([1.0] * 5, [1.0] * 5, "lower"), percent=percent)
    assert figures.of_before(compared) == text


def test_an_interval_has_the_digits_of_its_percentage() -> None:
    found = compare([1.0] * 5, [2.0] * 5, "lower")
    whole = replace(found, percent=88.51, interval=Interval(86.04, 91.06, 0.95))
    assert figures.interval(whole) == "[86.0..91.1]"
    assert figures.interval(replace(whole, percent=112.4)) == "[86..91]"
    assert figures.interval(replace(whole, interval=Interval(0.0, math.inf, 0.95))) == "[0..∞]"
    for without in (None, replace(whole, percent=None), replace(whole, interval=None)):
        assert figures.interval(without) == ""
    assert figures.percent(replace(whole, percent=None)) == "–"
    assert figures.percent(replace(whole, between=(88.46, 88.54))) == "88.5 %", "both ends look alike"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 repeats"), (1, "1 repeat"), (2, "2 repeats"), (1234, "1,234 repeats")]
)
def test_only_one_is_singular(number: int, text: str) -> None:
    assert figures.count(number, "repeat") == text


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("cpu_ns", 33_327_359, ("cpu", "33.3 ms")),
        ("error_us", 5, ("error", "5.00 µs")),
        ("wait_ms", 1500, ("wait", "1.50 s")),
        ("time_s", 2, ("time", "2.00 s")),
        ("rate_per_s", 5.5, ("rate", "5.50 /s")),
        ("size_bytes", 2000, ("size", "2.00 kB")),
        ("share_percent", 12.5, ("share", "12.5 %")),
        ("zones", 12_345, ("zones", "12,345")),
        ("ratio", 0.123456, ("ratio", "0.1235")),
    ],
)
def test_a_name_that_ends_in_a_unit_gives_it_to_its_number(name: str, value: float, shown: tuple[str, str]) -> None:
    assert figures.quantity(name, value) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (False, "no"),
        (12_345, "12,345"),
        (2.5, "2.5"),
        (10_000.0, "10,000"),
        ("knot@system", "knot@system"),
        ("transfer@engine", "transfer@engine (protocol floor, not stored)"),
    ],
)
def test_a_parameter_in_words(value: bool | int | float | str, text: str) -> None:
    assert figures.parameter(value) == text
