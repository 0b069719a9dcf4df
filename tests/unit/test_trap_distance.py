"""Traps of far transfers: waiting for round trips, and a transfer longer than its cycle."""

from __future__ import annotations

from pathlib import Path

import pytest
from transfer_load_data import transfer_load_run
from trial_data import clean_trial, judge, measured, series, use

from dnsrig.rundir import LinkSpec, PathSpec, ServerLimit
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

WORKERS = 10


def far_trial(
    folder: Path,
    *,
    rtt_ms: float = 200.0,
    round_trips: float = 2.0,
    busy: float = 0.05,
    settings: dict[str, object] | None = None,
) -> Trial:
    """BIND, ten transfers at a time; each zone costs a worker so many round trips."""
    trial = clean_trial(folder / "run")
    trial.record.link_tests[0]["rtt_median_us"] = 1e3 * rtt_ms
    trial.record.spec.hosts["secondary"].settings = settings or {"transfers-in": WORKERS, "transfers-per-ns": WORKERS}  # type: ignore[assignment]
    each_s = round_trips * rtt_ms / 1e3 / WORKERS
    start_ns = measured(trial, 12)
    samples = series(start_ns, secondary__cgroup__cpu_usage_us=[round(busy * 1e6 * second) for second in range(14)])
    use(trial, samples, [0.5 + each_s * number for number in range(100)])
    return trial


@pytest.mark.parametrize("each", [1.0, 2.0, 3.0, 6.0, 8.7])
def test_waiting_for_round_trips(tmp_path: Path, each: float) -> None:
    found = judge("workers-rtt-bound", far_trial(tmp_path, round_trips=each))
    assert found.verdict == "found"
    assert found.evidence["round_trips_a_zone"] == pytest.approx(each, rel=0.02)
    assert (found.evidence["workers"], found.evidence["rtt_ms"]) == (WORKERS, 200)
    assert "transfers-per-ns" in found.remedy


@pytest.mark.parametrize(
    "clean",
    [
        {"rtt_ms": 0.03},  # not far
        {"busy": 0.9},  # the CPU works
        {"round_trips": 0.2},  # faster than it could be if it waited
        {"round_trips": 30.0},  # slower than that: something else
    ],
)
def test_what_is_not_it(tmp_path: Path, clean: dict[str, float]) -> None:
    assert judge("workers-rtt-bound", far_trial(tmp_path, **clean)).verdict == "clear"


def test_the_servers_own_rate_is_another_trap(tmp_path: Path) -> None:
    trial = far_trial(tmp_path)
    assert trial.server is not None
    trial.server.limits = [ServerLimit(setting="rate", value=25, default=False, zones_per_s=25.0, remedy="raise it")]
    assert judge("server-rate-limit", trial).verdict == "found"
    assert judge("workers-rtt-bound", trial).verdict == "clear"


def test_what_it_cannot_tell(tmp_path: Path) -> None:
    unknown = far_trial(tmp_path / "a")
    server = unknown.record.spec.hosts["secondary"].server
    assert server is not None
    server.kind = "other"
    assert judge("workers-rtt-bound", unknown).verdict == "cannot-tell"
    unmeasured = far_trial(tmp_path / "b")
    unmeasured.record.link_tests = []
    assert judge("workers-rtt-bound", unmeasured).verdict == "cannot-tell"
    blind = far_trial(tmp_path / "c")
    use(blind, series(0))
    assert judge("workers-rtt-bound", blind).verdict == "cannot-tell"


def test_a_busy_path_with_ordered_jitter_has_longer_round_trips(tmp_path: Path) -> None:
    trial = far_trial(tmp_path, rtt_ms=250)
    way = PathSpec(delay_ms=125, jitter_ms=50)
    trial.record.spec.links[0] = LinkSpec(ends=("primary", "secondary"), kind="tun", forward=way, reverse=way)
    found = judge("workers-rtt-bound", trial)
    assert found.verdict == "found"
    assert 260 < float(found.evidence["rtt_ms"] or 0) < 300
    assert float(found.evidence["round_trips_a_zone"] or 0) < 1.95


def test_the_instrument_waits_as_well(tmp_path: Path) -> None:
    """100 zones a second over one connection: at 10 ms that is a round trip a zone."""
    trials = {str(t.record.spec.variant.parameters["policy"]): t for t in transfer_load_run(tmp_path / "run").trials}
    for policy, trial in trials.items():
        trial.record.spec.options = {"policy": policy, "connections": 1, "secondaries": 1}
        trial.record.link_tests = [{"from": "client", "to": "primary", "rtt_median_us": 10_000.0}]
        use(trial, series(measured(trial, 4), primary__cgroup__cpu_usage_us=[0, 10_000, 20_000, 30_000, 40_000]))
    one = judge("workers-rtt-bound", trials["one"])
    assert one.verdict == "found" and "options.connections" in one.remedy
    assert one.evidence["round_trips_a_zone"] == pytest.approx(1, rel=0.05)
    assert judge("workers-rtt-bound", trials["reused"]).verdict == "clear", "0.3 round trips are no waiting"
    assert all_traps()["workers-rtt-bound"].after(trials["pipelined"]) is None


def cycle(trial: Trial, cycle_s: float | None, time_s: float | None) -> Trial:
    if cycle_s is not None:
        trial.record.spec.options = {"cycle_s": cycle_s}
    trial.record.metrics[trial.record.spec.main_metric] = time_s
    return trial


def test_longer_than_its_cycle(tmp_path: Path) -> None:
    found = judge("cycle-too-short", cycle(clean_trial(tmp_path / "run"), 60.0, 90.0))
    assert found.verdict == "found"
    assert (found.evidence["cycles"], found.evidence["at_limit"]) == (1.5, False)
    assert "falls behind" in found.summary.replace("falls \nbehind", "falls behind")


def test_within_its_cycle(tmp_path: Path) -> None:
    assert judge("cycle-too-short", cycle(clean_trial(tmp_path / "run"), 90.0, 60.0)).verdict == "clear"


def test_a_trial_at_its_limit_took_at_least_that(tmp_path: Path) -> None:
    trial = cycle(clean_trial(tmp_path / "run"), 8.0, None)
    measured(trial, 12)
    trial.record.outcome = "timeout"
    found = judge("cycle-too-short", trial)
    assert found.verdict == "found" and "at least 12 s" in found.summary
    trial.record.spec.options = {"cycle_s": 20.0}
    assert judge("cycle-too-short", trial).verdict == "cannot-tell"


def test_an_ixfr_longer_than_its_cycle(tmp_path: Path) -> None:
    trial = cycle(clean_trial(tmp_path / "run"), 2.0, None)
    trial.record.instruments["ixfr"] = {"done": 3, "transfer_ns": {"p50": 3_000_000_000}}
    assert judge("cycle-too-short", trial).evidence["transfer_s"] == 3.0


def test_without_a_cycle_there_is_nothing_to_say(tmp_path: Path) -> None:
    trial = cycle(clean_trial(tmp_path / "run"), None, 90.0)
    assert all_traps()["cycle-too-short"].after(trial) is None
    trial.record.spec.options = {"cycle_s": 60.0}
    trial.record.outcome = "server-failed"
    assert all_traps()["cycle-too-short"].after(trial) is None
    trial.record.outcome = "done"
    trial.record.metrics = {}
    assert judge("cycle-too-short", trial).verdict == "cannot-tell"
