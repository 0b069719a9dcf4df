"""S2's figures beside those of a run."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
from load_data import LoadPlan, build
from trial_data import clean_trial, measured, series, use

from dnsrig.comparison.published import Measured, held_against, s2, s4, same_size
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Spread


def held(directory: Path, plan: LoadPlan, experiment: str) -> tuple[Run, list[Measured]]:
    build(directory, plan)
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"experiment": experiment}))
    run = Run.open(directory)
    return run, held_against(run)


def test_the_floor_is_the_same_percentile_of_every_repeat(tmp_path: Path) -> None:
    run, found = held(tmp_path, LoadPlan(servers=["echo@engine"], repeats=3), "echo-baseline")
    (one,) = found
    by_hand = [trial.latency.total("due").percentile(99.98) for trial in run.trials if trial.latency]
    assert isinstance(one.values, Spread)
    assert one.values.median == median(ns for ns in by_hand if ns is not None) / 1000
    assert (one.figure.value, one.figure.low, one.figure.high, one.figure.unit) == (None, None, 400, "us")


def test_another_rate_than_the_sources_is_told_and_not_compared(tmp_path: Path) -> None:
    _, (here,) = held(tmp_path / "here", LoadPlan(servers=["echo@engine"], rate_qps=2_000), "echo-baseline")
    assert not here.comparable and any("2,000 queries a second here" in sentence for sentence in here.differs)
    _, (there,) = held(tmp_path / "there", LoadPlan(servers=["echo@engine"], rate_qps=100_000), "echo-baseline")
    assert there.comparable and not any("queries a second" in sentence for sentence in there.differs)


def test_a_run_of_another_experiment_has_none_of_it(tmp_path: Path) -> None:
    assert not held(tmp_path, LoadPlan(servers=["echo@engine"]), "tour")[1]


@pytest.mark.parametrize(
    ("asked", "same", "said"),
    [
        ([100_000], True, []),
        ([100_000, 5_000], False, ["5,000 to 100,000 queries a second here, 100,000 in the source."]),
        ([5_000, 5_000], False, ["5,000 queries a second here, 100,000 in the source."]),
        ([], False, ["0 queries a second here, 100,000 in the source."]),
    ],
)
def test_the_rate_is_that_of_all_trials(tmp_path: Path, asked: list[int], same: bool, said: list[str]) -> None:
    trials = [clean_trial(tmp_path / str(number)) for number in range(len(asked))]
    for trial, qps in zip(trials, asked, strict=True):
        trial.record.instruments["load"] = {"model": "rate", "asked_qps": qps}
    assert s2._rate(trials) == (same, said)


def test_the_cpu_of_a_server_is_in_percent_of_a_core(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    start_ns = measured(trial, 4)
    use(trial, series(start_ns, secondary__cgroup__cpu_usage_us=[0, 250_000, 500_000, 750_000, 1_000_000]))
    assert s2._cpu_percent(trial) == 25
    use(trial, series(start_ns, secondary__cgroup__cpu_usage_us=[0, 500_000]))
    assert s2._cpu_percent(trial) == 50
    use(trial, series(start_ns, secondary__cgroup__cpu_usage_us=[0]))
    assert s2._cpu_percent(trial) is None


PERFECT = PathSpec(delay_ms=150, loss_percent=10)


@pytest.mark.parametrize(
    ("forward", "reverse", "said"),
    [
        (PERFECT, PathSpec(delay_ms=150), []),
        (PathSpec(delay_ms=330, loss_percent=11), None, []),
        (PathSpec(delay_ms=270), PathSpec(loss_percent=9), []),
        (PathSpec(delay_ms=331, loss_percent=10), None, ["Round trip 331 ms here, about 300 ms in the source."]),
        (PathSpec(delay_ms=269, loss_percent=10), None, ["Round trip 269 ms here, about 300 ms in the source."]),
        (PERFECT, PathSpec(delay_ms=150, loss_percent=12), ["Loss 12 % here, about 10 % in the source."]),
        (PathSpec(delay_ms=300, loss_percent=8), None, ["Loss 8 % here, about 10 % in the source."]),
        (None, None, ["Without an emulated path here."]),
    ],
)
def test_the_path_of_s4_is_known_to_a_tenth(
    tmp_path: Path, forward: PathSpec | None, reverse: PathSpec | None, said: list[str]
) -> None:
    spec = clean_trial(tmp_path / "run").record.spec
    spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=forward, reverse=reverse)]
    assert s4.path(spec) == said and s4.rate(spec) == []
    spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=PathSpec(rate_mbit=20))]
    assert s4.rate(spec) == ["Rate 20 Mbit/s here; the source names none."]


@pytest.mark.parametrize(("here", "same"), [(94, False), (95, True), (100, True), (105, True), (106, False)])
def test_a_size_is_the_same_to_a_twentieth(here: int, same: bool) -> None:
    assert same_size(here, 100) is same
