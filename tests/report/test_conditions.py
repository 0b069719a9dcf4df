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
