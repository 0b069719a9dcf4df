"""A trial's own times and counters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic
from trial_data import SECOND, clean_trial, measured, use

from dnsrig.comparison.summary import describe
from dnsrig.rundir import Anchor
from dnsrig.runs.trial import Trial, total

COUNTER = ("secondary", "udp", "in_datagrams")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A trial of four seconds, whose secondary starts with them."""
    trial = clean_trial(tmp_path / "run")
    measured(trial, 4)
    return trial


def sampled(trial: Trial, values: dict[float, int], *series: str) -> None:
    """Samples of a series at these seconds of `measure`."""
    assert trial.measure is not None
    start_ns = trial.measure.start.monotonic_ns
    rows = [(*(series or COUNTER), start_ns + round(at_s * SECOND), value) for at_s, value in values.items()]
    schema = {**dict.fromkeys(("host", "source", "metric"), pl.String), **dict.fromkeys(("time_ns", "value"), pl.Int64)}
    use(trial, pl.DataFrame(rows, schema=schema, orient="row"))


@pytest.mark.parametrize(
    ("values", "during", "growth", "peak"),
    [
        ({-1.5: 1, -0.5: 2, 0.5: 4, 3.5: 8, 4.5: 16, 5.5: 32}, [2, 4, 8, 16], 14, 16),
        ({-1: 1, 0: 2, 2: 4, 4: 8, 5: 16, 6: 32}, [2, 4, 8, 16], 14, 16),
        ({1: 9, 2: 4}, [9, 4], -5, 9),
        ({-2: 1, -1: 2}, [2], None, 2),
        ({5: 7, 6: 8}, [7], None, 7),
        ({-1: 3, 5: 7}, [3, 7], 4, 7),
        ({}, [], None, None),
    ],
)
def test_a_series_is_from_the_last_sample_before_measure_to_the_first_after_it(
    trial: Trial, values: dict[float, int], during: list[int], growth: float | None, peak: float | None
) -> None:
    sampled(trial, values)
    assert trial.during_measure(*COUNTER)["value"].to_list() == during
    assert (trial.growth(*COUNTER), trial.peak(*COUNTER)) == (growth, peak)
    assert trial.growth("primary", *COUNTER[1:]) is trial.growth("secondary", "udp", "x") is None


def test_udp_is_of_both_families(trial: Trial) -> None:
    sampled(trial, {0: 1, 4: 6})
    assert trial.udp_growth("secondary", "in_datagrams") == 5
    first = trial.samples
    sampled(trial, {0: 1, 4: 3}, "secondary", "udp6", "in_datagrams")
    second = trial.samples
    assert trial.udp_growth("secondary", "in_datagrams") is None, "earlier versions sampled IPv4 alone"
    use(trial, pl.concat([first, second]))
    assert trial.udp_growth("secondary", "in_datagrams") == 7


@pytest.mark.parametrize(
    ("parts", "whole"), [([1.0, 2.0], 3), ([0.0], 0), ([], None), ([1.0, None], None), ([None, 1.0], None)]
)
def test_a_total_needs_all_its_parts(parts: list[float | None], whole: float | None) -> None:
    assert total(parts) == whole


def test_a_time_of_the_wall_clock_is_converted_by_the_nearest_anchor(trial: Trial) -> None:
    """Between both readings somebody set the clock back by 100 ns."""
    trial.record.phases = []
    trial.record.anchors = [
        Anchor(monotonic_ns=1_200, realtime_ns=2_000, error_ns=0),
        Anchor(monotonic_ns=100, realtime_ns=1_000, error_ns=0),
    ]
    assert [anchor.monotonic_ns for anchor in trial.anchors] == [100, 1_200]
    assert [trial.monotonic_ns(time_ns) for time_ns in (0, 1_499, 1_501, 2_100)] == [-900, 599, 701, 1_300]
    server = trial.server
    assert server is not None
    server.exec_ns = 99
    assert trial.since_exec_s(1_499) == 5e-7 and trial.since_exec_s(None) is None
    trial.record.anchors = []
    assert trial.since_exec_s(1_499) is None


def test_the_result_counts_from_the_start_of_the_server_or_of_measure(trial: Trial) -> None:
    server, phase = trial.server, trial.measure
    assert server is not None and phase is not None
    start_ns = phase.start.monotonic_ns
    assert (trial.started_in_measure, trial.zero_ns, trial.exec_ns, trial.is_cold_start) == (
        True,
        start_ns,
        start_ns,
        True,
    )
    server.exec_ns = start_ns + 5
    assert (trial.started_in_measure, trial.zero_ns) == (True, start_ns + 5)
    server.exec_ns = start_ns - 5
    assert (trial.started_in_measure, trial.zero_ns, trial.exec_ns) == (False, start_ns, start_ns - 5)
    assert not trial.is_cold_start
    trial.record.phases = []
    assert trial.zero_ns == start_ns - 5
    trial.record.servers = {}
    assert (trial.zero_ns, trial.exec_ns, trial.server) == (None, None, None)


def test_of_several_servers_under_test_the_first_one_to_start_counts(trial: Trial) -> None:
    server, spec = trial.server, trial.record.spec
    assert server is not None
    others = {"replica": server.exec_ns - 3, "primary": server.exec_ns - 9, "gone": server.exec_ns - 99}
    trial.record.servers |= {name: server.model_copy(update={"exec_ns": at_ns}) for name, at_ns in others.items()}
    spec.hosts["replica"] = spec.hosts["secondary"].model_copy()
    assert trial.exec_ns == server.exec_ns - 3


@pytest.mark.parametrize(
    ("metric", "is_time"), [("transfer_time_s", True), ("load_time_s", True), ("zones_per_s", False), ("p99_ms", False)]
)
def test_a_result_is_a_time_if_its_name_ends_in_seconds(trial: Trial, metric: str, is_time: bool) -> None:
    trial.record.spec.main_metric = metric
    synthetic.known(trial, **{metric: 7.0})
    assert (trial.result, trial.time_s) == (7.0, 7.0 if is_time else None)


def test_lines_of_a_profile_are_a_stack_and_a_count(trial: Trial) -> None:
    (trial.directory / "profile-secondary.folded").write_text("a;b c 3\nd 4\nbad\n 5\ne x\nf -1\n")
    assert trial.stacks == trial.stacks_of("secondary") == {"a;b c": 3, "d": 4}
    assert trial.stacks_of("primary") == {}


def failing(trial: Trial) -> float:
    return 1 / 0


def test_a_value_at_its_ceiling_is_a_lower_bound_and_a_lower_end_is_never_above_it(trial: Trial) -> None:
    metric = replace(describe("transfer_time_s"), ceiling=lambda trial: 10.0, lower=lambda trial: 3.0)
    assert [metric.at_ceiling(trial, value) for value in (9.9, 10.0, 11.0)] == [False, True, True]
    assert [metric.lower_end(trial, value) for value in (2.0, 3.0, 9.0)] == [2.0, 3.0, 3.0]
    for unknown in (replace(metric, ceiling=None, lower=None), replace(metric, ceiling=failing, lower=failing)):
        assert not unknown.at_ceiling(trial, 99.0) and unknown.lower_end(trial, 9.0) == 9.0


@pytest.mark.parametrize(
    ("outcome", "without", "good", "bad"),
    [
        ("done", True, True, True),
        ("timeout", False, True, False),
        ("invalid", False, False, False),
        ("error", False, False, False),
    ],
)
def test_which_trials_count_for_a_metric(trial: Trial, outcome: Any, without: bool, good: bool, bad: bool) -> None:
    trial.record.outcome = outcome
    metric = replace(describe("transfer_time_s"), at_limit=None)
    assert metric.counts(trial) is without
    assert replace(metric, at_limit=lambda trial: True).counts(trial) is good
    assert replace(metric, at_limit=lambda trial: False).counts(trial) is bad
    assert replace(metric, at_limit=lambda trial: bool(failing(trial))).counts(trial) is bad
