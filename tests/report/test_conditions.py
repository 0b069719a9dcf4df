from __future__ import annotations

from typing import Any

import pytest

from dnsrig.report import conditions
from dnsrig.runs.run import Run


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        ("cpu_ns", [33_327_359], ("cpu", "33.3 ms")),
        ("cpu_ns", [33_327_359, 41_000_000], ("cpu", "33.3..41.0 ms")),
        ("resolution_ns", [900_000, 2_000_000_000], ("resolution", "0.900 ms..2.00 s")),
        ("memory_total_bytes", [25_276_502_016], ("memory_total", "25.3 GB")),
        ("polls", [104, 28_232], ("polls", "104..28,232")),
        ("works", [True, True], ("works", "yes")),
        ("governor", [None, "performance"], ("governor", "–; performance")),
        ("mixed_ns", [1, "late"], ("mixed_ns", "1; late")),
        ("nothing", [], ("nothing", "–")),
    ],
)
def test_a_range_carries_its_unit(name: str, values: list[Any], shown: tuple[str, str]) -> None:
    assert conditions.value_range(name, values) == shown


def test_nested_conditions_are_laid_flat() -> None:
    data = {"kernel": "6.1", "sysctls": {"net.core.rmem_max": "212992"}, "cpus": [0, 1]}
    assert conditions.flatten(data) == {"kernel": "6.1", "sysctls.net.core.rmem_max": "212992", "cpus": "0, 1"}


def test_endless_conditions_end() -> None:
    assert len(conditions.flatten({str(number): number for number in range(10_000)})) == conditions.MOST_ROWS


def test_links_are_named_by_their_ends(run: Run) -> None:
    assert conditions.links(run) == {"primary → secondary": {"works": "yes", "rtt_median": "32.0..36.0 µs"}}


def test_what_is_zero_everywhere_is_said_once() -> None:
    rows, zero = conditions.as_table({"probe": {"polls": "104", "late": "0"}, "watch": {"samples": "50", "late": "0"}})
    assert rows == {"polls": ["104", "–"], "samples": ["–", "50"]}
    assert zero == ["late"]


def test_absolute_moments_are_left_out(run: Run) -> None:
    assert set(conditions.instruments(run)) == {"probe", "watch"}
    assert not any(name.endswith("_ns") or name == "event" for name in conditions.instruments(run)["probe"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (False, "no"),
        (12_345, "12,345"),
        (0.1234567, "0.123457"),
        ([], "–"),
        ([1, None, "x"], "1, –, x"),
        ({}, "–"),
        ({"a": 1, "b": [2, 3]}, "a 1, b 2, 3"),
        ("text", "text"),
    ],
)
def test_any_value_is_one_line(value: Any, shown: str) -> None:
    assert conditions.text(value) == shown


def test_conditions_that_machines_share_are_said_once() -> None:
    columns = {"a": {"kernel": "6.1", "cpus": "2"}, "b": {"kernel": "6.1", "cpus": "4"}}
    assert conditions.alike(columns) == {"kernel": "6.1"}
    assert conditions.differing(columns) == {"a": {"cpus": "2"}, "b": {"cpus": "4"}}
    assert conditions.alike({"": columns["a"]}) == columns["a"]
    assert conditions.differing({"a": columns["a"], "b": dict(columns["a"])}) == {}


def test_a_count_that_is_not_zero_everywhere_is_a_row() -> None:
    rows, zero = conditions.as_table({"a": {"late": "0", "name": "–"}, "b": {"late": "1"}})
    assert rows == {"late": ["0", "1"], "name": ["–", "–"]} and zero == []
