"""Values of the matrix in the words of a reader."""

from __future__ import annotations

import pytest

from dnsrig.report import phrases
from dnsrig.rundir import Scalar, Variant


@pytest.mark.parametrize(
    ("axis", "value", "words"),
    [
        ("changes", "none", "at rest"),
        ("changes", "catalog", "while the catalog changes"),
        ("zones", 1000, "1,000 zones"),
        ("secondaries", 1, "1 secondary"),
        ("ixfr", True, "IXFR"),
        ("server", "bind@forky", "bind@forky"),
        ("resolver_server", "unbound@forky", "unbound@forky"),
        ("queue_length", 20, "queue length: 20"),
        ("fast_open", False, "fast open: no"),
        ("rate_qps", 5000.0, "5,000 queries/s"),
        ("loss_percent", 5.0, "loss 5 %"),
        ("changes_per_s", 10, "changes per s: 10"),
        ("zones", 1, "1 zone"),
        ("zones", 0, "0 zones"),
        ("zones", "tiny", "number of zones: tiny"),
        ("qps", 1, "1 query/s"),
        ("qps", 2.5, "2.5 queries/s"),
        ("changed_percent", 1, "1 % changed"),
        ("round_trip_ms", 12.5, "round trip 12.5 ms"),
        ("round_trip_ms", True, "round trip ms: yes"),
        ("carrier", "axfr", "axfr"),
        ("way", "none", "way: none"),
    ],
)
def test_a_value_names_the_thing(axis: str, value: Scalar, words: str) -> None:
    assert phrases.of(axis, value) == words


def test_what_acts_unseen_is_written_out() -> None:
    assert "\u202e" not in phrases.of("tran\u202esport", "ud\u202ep")


def test_a_variant_has_the_words_of_the_axes_that_it_has() -> None:
    variant = Variant(id="v", parameters={"server": "bind@forky", "changes": "none"})
    assert phrases.of_variant(variant, ["server", "changes", "zones"]) == "bind@forky · at rest"


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        ("zones", "number of zones"),
        ("qps", "queries/s"),
        ("records_changed", "records changed"),
        ("changed_percent", "% changed"),
        ("worker_threads", "worker threads"),
    ],
)
def test_the_title_of_an_axis_of_numbers(axis: str, text: str) -> None:
    assert phrases.name(axis) == text
