"""Metrics of load: from its summary, with the client's timeout as their ceiling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from load_data import LoadPlan, build, write_hlog
from load_data import summary as summed_up

from dnsrig.comparison import thresholds
from dnsrig.comparison.compare import compare_runs, metric_name
from dnsrig.comparison.summary import metric_tables, variant_table
from dnsrig.comparison.thresholds import Repeats, judge, parse
from dnsrig.metrics import all_metrics
from dnsrig.report import comparison, wording
from dnsrig.rundir import Outcome
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats.samples import Sample, Samples

BIND, KNOT, ECHO = "bind@system", "knot@system", "echo@engine"


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Run.open(build(tmp_path / "run", LoadPlan(repeats=1, servers=[KNOT], seconds=2))).trials[0]


def value(name: str, trial: Trial, **changes: Any) -> float | None:
    trial.record.instruments["load"] |= changes
    return all_metrics()[name].compute(trial)


def stalled(lost: int = 0) -> list[dict[str, dict[int, int]]]:
    """Three seconds at 1,000 queries a second: a server that stands still for the first 200 ms of each, and answers at
    once otherwise (10 µs); ``lost`` of those a second are never answered. A query i ms into the stall waits 200 - i
    ms."""
    due = {(200 - i) * 1_000_000: 1 for i in range(200)} | {10_000: 800 - lost}
    if lost:
        due[1_000_000_000] = lost
    return [{"due": due, "sent": due, "lag": {1_000: 1000}}] * 3


def test_a_stall_is_counted_whole(trial: Trial) -> None:
    """By hand: 20 % of the queries wait, evenly from 1 to 200 ms, so the slowest 1 % wait for more than 190 ms."""
    write_hlog(trial.directory / "latency.hlog", stalled())
    trial.record.instruments["load"] = summed_up(trial.directory / "latency.hlog", asked_qps=1000.0)
    assert value("p50_ms", trial) == pytest.approx(0.01, rel=1e-3)
    assert value("p90_ms", trial) == pytest.approx(100, rel=1e-3)
    assert value("p99_ms", trial) == pytest.approx(190, rel=1e-3)
    assert value("p99_9_ms", trial) == pytest.approx(199, rel=1e-3)
    assert value("max_ms", trial) == pytest.approx(200, rel=1e-3)
    assert value("mean_ms", trial) == pytest.approx(0.2 * 100.5 + 0.8 * 0.01, rel=1e-3)
    assert value("send_lag_p99_us", trial) == pytest.approx(1)
    assert value("answered_qps", trial) == 1000
    assert value("asked_qps", trial) == 1000
    assert value("unanswered_share_percent", trial) == 0


def test_what_was_never_answered_is_at_least_the_timeout(trial: Trial) -> None:
    write_hlog(trial.directory / "latency.hlog", stalled(lost=20))
    trial.record.instruments["load"] = summed_up(trial.directory / "latency.hlog")
    assert value("p90_ms", trial) == pytest.approx(120, rel=1e-3), "20 ranks further into the stall"
    metric = all_metrics()["p99_ms"]
    trial.record.metrics["p99_ms"] = value("p99_ms", trial)
    assert trial.record.metrics["p99_ms"] == 1000, "not what the histogram rounds it to, or its lag"
    assert wording.of_trial(trial, metric) == "≥ 1,000 ms"
    assert value("unanswered_share_percent", trial) == 2
    lost = {"closed": 30, "reset": 0, "refused": 0, "tls": 0}
    assert value("unanswered_share_percent", trial, timeouts=30, lost=lost) == 2
    assert value("answered_qps", trial) == 980


def test_nothing_is_made_up(trial: Trial) -> None:
    """Of no load at all, of nothing sent, and of a ramp, whose latencies are of many rates at once."""
    names = [name for name, metric in all_metrics().items() if metric.compute.__module__.endswith("metrics.latency")]
    assert {"p50_ms", "p99_ms", "p99_99_ms", "capacity_qps", "sent_p99_ms"} <= set(names)
    load = trial.record.instruments["load"]
    trial.record.instruments = {"load": load | {"model": "ramp", "capacity_qps": None}}
    assert {name: value(name, trial) for name in names if name != "asked_qps"} == dict.fromkeys(
        set(names) - {"asked_qps"}
    )
    empty = dict.fromkeys(("p50", "p99", "mean", "max"))
    nothing = {"sent": 0, "latency_ns": empty, "sent_latency_ns": empty, "lag_ns": empty, "asked_qps": None}
    trial.record.instruments = {"load": load | nothing | {"model": "closed", "end_ns": load["start_ns"]}}
    assert {value(name, trial) for name in names} == {None}
    trial.record.instruments = {}
    assert {all_metrics()[name].compute(trial) for name in names} == {None}


def test_capacity_is_that_of_the_ramp(trial: Trial) -> None:
    assert value("capacity_qps", trial) is None
    trial.record.instruments["ramp"] = {"model": "ramp", "capacity_qps": 5_000}
    assert value("capacity_qps", trial) == 5_000, "the short one before"
    assert value("capacity_qps", trial, model="ramp", capacity_qps=7_000.0) == 7_000
    metric = all_metrics()["capacity_qps"]
    assert not metric.at_ceiling(trial, 7_000.0)
    trial.record.instruments["load"]["capacity_is_lower_bound"] = True
    trial.record.metrics["capacity_qps"] = 7_000.0
    assert wording.of_trial(trial, metric) == "≥ 7,000 queries/s"


def test_the_rows_of_load_are_read(trial: Trial) -> None:
    assert trial.load_intervals.height == 2
    assert trial.load_intervals["due"].sum() == trial.load.due // 2 * 2
    assert trial.clients["client"].n_unique() == 16
    (trial.directory / "clients.arrow").unlink()
    (trial.directory / "latency.hlog").unlink()
    bare = Trial(trial.directory, trial.record)
    assert bare.clients.is_empty() and bare.latency is None


def test_a_figure_at_the_timeout_is_bounded_and_compared_as_far_as_known(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", LoadPlan(repeats=6, seconds=2, timeouts={BIND: 100})))
    rows = {str(row.variant.parameters["server"]): row for row in variant_table(run, "p99_ms")}
    assert wording.measured(rows[BIND]) == "≥ 1,000 ms"
    assert rows[KNOT].comparison is not None and rows[KNOT].comparison.change == "better"
    assert wording.relative(run, rows[KNOT]).startswith("≤ 0.0")
    of_medians = next(rows for metric, rows in metric_tables(run) if metric.name == "p50_ms")
    median = {str(row.variant.parameters["server"]): row for row in of_medians}
    assert not median[BIND].samples.censored
    assert median[KNOT].comparison is not None and median[KNOT].comparison.change == "better"


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        *(("p99", "p99_ms"), ("p99_ms", "p99_ms"), ("p99.9", "p99_9_ms"), ("p99_9", "p99_9_ms"), ("p99.99", "p99_99_ms")),
        *(("capacity", "capacity_qps"), ("max", "max_ms"), ("send_lag_p99", "send_lag_p99_us")),
        ("unanswered_share", "unanswered_share_percent"),
    ],
)  # fmt: skip
def test_short_names(name: str, metric: str) -> None:
    assert metric_name(name, []) == metric
    assert thresholds.parse(f"{name} > 110 %").metric == name


def test_p99_of_a_slower_run_is_a_regression(tmp_path: Path) -> None:
    plans = [LoadPlan(servers=[KNOT], repeats=5, seconds=2, median_us={KNOT: us}) for us in (100.0, 150.0)]
    base, new = (Run.open(build(tmp_path / name, plan)) for name, plan in zip(("base", "new"), plans))
    for rule, decision in (("p99 > 110 %", "regression"), ("p99 > 170 %", "pass"), ("p99.9 > 110 %", "regression")):
        assert compare_runs(base, new, [], [parse(rule)]).decision == decision


def repeats(middle: float, at_least: int = 0) -> Repeats:
    done: Outcome = "done"
    values = [middle + step for step in range(-3, 4)]
    found = Samples(Sample(value, value, at_least=place >= 7 - at_least) for place, value in enumerate(values))
    return Repeats(found, thresholds.Counter([done] * 7))


@pytest.mark.parametrize(
    ("rule", "base", "new", "decision"),
    [
        # The true figure of the new run is larger: a regression stays one, a pass may not be one.
        ("p99 > 110 %", repeats(500), repeats(1000, 7), "regression"),
        ("p99 > 300 %", repeats(500), repeats(1000, 7), "undecided"),
        ("p99 > 300 %", repeats(500), repeats(1000), "pass"),
        # That of the base is larger: a pass stays one.
        ("p99 > 110 %", repeats(1000, 7), repeats(500), "pass"),
        ("p99 > 40 %", repeats(1000, 7), repeats(500), "undecided"),
        ("p99 < 60 %", repeats(1000, 7), repeats(500), "regression"),
        ("p99 < 40 %", repeats(1000, 7), repeats(500), "undecided"),
        # Of neither anything is known.
        ("p99 > 110 %", repeats(1000, 7), repeats(1000, 7), "undecided"),
        ("p99 < 90 %", repeats(1000, 7), repeats(1000, 7), "undecided"),
    ],
)
def test_a_rule_decides_no_more_than_is_known(rule: str, base: Repeats, new: Repeats, decision: str) -> None:
    (found,) = judge([(parse(rule), base, new)])
    assert found.decision == decision, found.reason


def test_compare_says_what_is_only_a_bound(tmp_path: Path) -> None:
    base = Run.open(build(tmp_path / "base", LoadPlan(servers=[KNOT], repeats=5, seconds=2)))
    new = Run.open(build(tmp_path / "new", LoadPlan(servers=[KNOT], repeats=5, seconds=2, timeouts={KNOT: 100})))
    found = compare_runs(base, new, [], [parse("p99 > 110 %")])
    assert found.decision == "regression"
    (line,) = comparison.as_json(found)["comparisons"]
    assert (line["bound"], line["new"]["at_least"], line["base"]["at_least"]) == ("≥", 5, 0)
    (turned,) = comparison.as_json(compare_runs(new, base, [], []))["comparisons"]
    assert turned["bound"] == "≤"
    (alike,) = comparison.as_json(compare_runs(new, new, [], []))["comparisons"]
    assert alike["percent"] is None
