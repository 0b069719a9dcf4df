"""How late a load generator may be."""

from __future__ import annotations

import pytest

from dnsrig.runs import lag
from dnsrig.runs.load_result import LoadResult


@pytest.mark.parametrize(
    ("latency_ns", "allowed_ns"),
    [
        (0, 100_000),
        (1_000_000, 100_000),
        (1_000_010, 100_001),
        (5_000_000, 500_000),
        (10_000_000, 1_000_000),
        (90_000_000, 1_000_000),
    ],
)
def test_a_tenth_of_the_latency_is_allowed_between_two_limits(latency_ns: float, allowed_ns: float) -> None:
    assert lag.allowed_ns(latency_ns) == pytest.approx(allowed_ns)


@pytest.mark.parametrize(
    ("lower_ns", "upper_ns", "wide"),
    [
        (0, 1_000_000, False),  # no client waited for more than a millisecond
        (0, 1_000_001, True),
        (200_000, 2_000_000, False),  # ten times
        (200_000, 2_000_001, True),
        (50_000, 1_050_000, False),
        (50_000, 1_050_001, True),
    ],
)
def test_an_interval_is_too_wide_by_its_ratio_and_by_its_width(lower_ns: float, upper_ns: float, wide: bool) -> None:
    assert lag.too_wide(lower_ns, upper_ns) is wide


@pytest.mark.parametrize(
    ("lag_ns", "answer_ns", "said"),
    [
        (100_000, 200_000, ""),
        (500_000, 5_000_000, ""),
        (
            600_000,
            5_000_000,
            "1 % of the queries were sent 0.6 ms after they were due or later, "
            "where 0.5 ms are allowed beside answers of 5 ms (p99)",
        ),
    ],
)
def test_runs_of_earlier_versions_are_judged_by_their_lateness(lag_ns: int, answer_ns: int, said: str) -> None:
    load = LoadResult(lag_ns={"p99": lag_ns}, sent_latency_ns={"p99": answer_ns})
    assert lag.why_not(load) == said
    assert lag.why_not(LoadResult()) == ""


def test_an_interval_that_is_too_wide_is_told_with_its_ends() -> None:
    load = LoadResult(lag_ns={"p99": 2_500_000}, latency_ns={"p99": 2_600_000}, lower_latency_ns={"p99": 100_000})
    assert lag.why_not(load) == (
        "1 % of the queries were sent 2.5 ms after they were due or later, "
        "so p99 lies between 0.1 and 2.6 ms: more than 10 times and 1 ms apart"
    )
