"""Clocks of other machines: known well enough, not known, or with wall times that are none of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from elsewhere_data import clock, put
from trial_data import SECOND, clean_trial, judge, measured, series, use

from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

MS = 1_000_000


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A generator on rack-1, sampled each second."""
    found = clean_trial(tmp_path / "run")
    put(found, "generator-1", "rack-1", asks=True)
    start = measured(found, 4)
    use(found, series(start - SECOND, **{"generator-1__cgroup__cpu_usage_us": [0] * 6}))
    return found


def with_clock(trial: Trial, **changes: Any) -> None:
    trial.record.machines["rack-1"].clock = clock(**changes)


def test_a_trial_on_one_machine_has_one_clock(tmp_path: Path) -> None:
    assert all_traps()["clocks-apart"].after(clean_trial(tmp_path / "run")) is None


def test_clocks_that_are_known_are_clear_however_far_they_lie_apart(trial: Trial) -> None:
    with_clock(trial, offset_ns=10**15)
    assert judge("clocks-apart", trial).verdict == "clear"


@pytest.mark.parametrize(("error_ms", "verdict"), [(9, "clear"), (11, "found")])
def test_samples_may_be_wrong_by_a_hundredth_of_their_interval(trial: Trial, error_ms: int, verdict: str) -> None:
    with_clock(trial, error_ns=error_ms * MS)
    found = judge("clocks-apart", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert found.summary.startswith(
            "The clock of rack-1 is known to ± 11 ms, an error that the resources of generator-1"
        )
        assert found.metrics == (), "a latency carries nothing of it"


@pytest.mark.parametrize(("error_ms", "verdict"), [(0.9, "clear"), (1.1, "found")])
def test_the_start_of_a_server_there_is_a_moment(trial: Trial, error_ms: float, verdict: str) -> None:
    put(trial, "secondary", "rack-1")
    with_clock(trial, error_ns=round(error_ms * MS))
    found = judge("clocks-apart", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert "the start of secondary and all times that begin with it have" in found.summary
        assert found.metrics == ("transfer_time_s",)


def test_a_clock_that_was_not_compared_is_told(trial: Trial) -> None:
    put(trial, "generator-2", "rack-2", asks=True)
    trial.record.machines["rack-2"].clock = None
    found = judge("clocks-apart", trial)
    assert found.verdict == "cannot-tell" and "rack-2" in found.summary and "rack-1" not in found.summary
    del trial.record.machines["rack-2"]
    assert judge("clocks-apart", trial).verdict == "cannot-tell"
    with_clock(trial, error_ns=11 * MS)
    assert judge("clocks-apart", trial).evidence["not_compared"] == "rack-2"


@pytest.mark.parametrize(
    ("offset_ns", "error_ns", "told"),
    [
        (900 * MS, 0, ""),
        (1_500 * MS, 600 * MS, ""),
        (1_000 * MS, 0, ""),
        (1_001 * MS, 0, "1.001 s ahead of"),
        (1_500 * MS, 0, "1.5 s ahead of"),
        (-12 * SECOND, 0, "12 s behind"),
    ],
)
def test_wall_clocks_that_lie_apart(trial: Trial, offset_ns: int, error_ns: int, told: str) -> None:
    with_clock(trial, realtime_offset_ns=offset_ns, realtime_error_ns=error_ns)
    found = judge("clocks-apart", trial)
    assert found.verdict == ("found" if told else "clear")
    assert told in found.summary
    assert not told or "chrony" in found.remedy


@pytest.mark.parametrize(
    ("apart_s", "told"),
    [(200, "uses up a part of the 300 s"), (300, "uses up a part of the 300 s"), (301, "exceeds the 300 s")],
)
def test_tsig_allows_a_difference(trial: Trial, apart_s: int, told: str) -> None:
    trial.record.spec.transfer.transport = "tcp+tsig"
    with_clock(trial, realtime_offset_ns=apart_s * SECOND)
    assert told in judge("clocks-apart", trial).summary
