"""S2's figures beside those of a run."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from load_data import LoadPlan, build

from dnsrig.comparison.published import Measured, held_against
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
