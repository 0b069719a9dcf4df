"""Traps of query load: each provoked on traffic made query by query, and silent on clean traffic.

Each is provoked for real in tests/integration/test_load_traps.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from load_rows import MS, Asked, Server, load, log_normal, ramp, stalling
from suites import examples
from trial_data import SECOND, across, clean_trial, judge, measured, series, use

from dnsrig.runs.latency import Histogram
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps, examine
from dnsrig.traps.cold_first_interval import cold_start
from dnsrig.traps.generator_bottleneck import beside_echo, steps_that_decided
from dnsrig.traps.mean_hides_tail import hidden_tail

LOAD_TRAPS = ("generator-bottleneck", "mean-hides-tail", "blocked-thread", "cold-first-interval", "rate-not-sent")
CALM = log_normal(0.2, 0.4)


@pytest.fixture(autouse=True)
def begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of each test begins anew, so that its numbers do not depend on the tests before it."""
    monkeypatch.setitem(globals(), "CALM", log_normal(0.2, 0.4))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A trial for traffic that replaces all that is looked at."""
    trial = clean_trial(tmp_path_factory.mktemp("load") / "run", synthetic.Plan(servers=["knot@system"], repeats=1))
    use(trial, series(0))
    return trial


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    found = clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))
    load(found, Asked(), CALM)
    return found


def test_load_traps_say_nothing_of_a_trial_without_load(tmp_path: Path) -> None:
    without = clean_trial(tmp_path / "run")
    assert [all_traps()[trap].after(without) for trap in LOAD_TRAPS] == [None] * len(LOAD_TRAPS)


def test_load_traps_say_something_of_every_trial_with_load(tmp_path: Path) -> None:
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(servers=["knot@system"], zones=[100])))
    for trial in run.trials:
        load(trial, Asked(), CALM)
    said = {(finding.trap, finding.repeat) for finding in examine(run)}
    assert said >= {(trap, trial.record.spec.repeat) for trap in LOAD_TRAPS for trial in run.trials}


@settings(
    max_examples=examples(10, full=25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    qps=st.integers(300, 2_000),
    clients=st.integers(1, 64),
    median_ms=st.floats(0.03, 30),
    sigma=st.floats(0.05, 0.6),
    poisson=st.booleans(),
    round_robin=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_clean_traffic_is_no_trap(
    shared: Trial, qps: int, clients: int, median_ms: float, sigma: float, poisson: bool, round_robin: bool, seed: int
) -> None:
    """However the queries arrive, whoever sends them, and with the tail that a log-normal has."""
    asked = Asked(qps=qps, seconds=6, clients=clients, poisson=poisson, round_robin=round_robin, seed=seed)
    load(shared, asked, log_normal(median_ms, sigma, seed))
    found = [judge(trap, shared) for trap in LOAD_TRAPS]
    assert [conclusion.summary for conclusion in found if conclusion.verdict == "found"] == []


def test_the_calm_traffic_of_these_tests_is_clear(trial: Trial) -> None:
    load(trial, Asked(qps=2_000), CALM)
    assert {trap: judge(trap, trial).verdict for trap in LOAD_TRAPS} == dict.fromkeys(LOAD_TRAPS, "clear")


# --- mean-hides-tail ---


def test_a_stall_of_a_thread_hides_in_the_mean(trial: Trial) -> None:
    """One of eight threads, 20 ms of each second: 1 query in 400 waits, 10 ms in the mean, so the mean is 0.2 + 0.025
    ms."""
    load(trial, Asked(qps=5_000), stalling(CALM, every_ms=1000, stall_ms=20, late=lambda client, _: client % 8 == 0))
    found = judge("mean-hides-tail", trial)
    assert found.verdict == "found"
    evidence = found.evidence
    assert evidence["percentile"] == 99.9
    assert evidence["mean_ms"] == pytest.approx(0.242, abs=0.02)
    assert float(evidence["queries_in_tail_percent"] or 0) == pytest.approx(0.25 * 0.88, abs=0.05), "from 2.4 ms on"
    assert f"{evidence['queries_in_tail']} of 50,000 queries" in found.summary


def test_a_hidden_tail_counts_answers_and_time() -> None:
    """99 wait 1 ms and one 99 ms: 1 % of the queries have half of the time waited, and the mean is 1.98 ms."""
    tail = hidden_tail(Histogram([MS, 99 * MS], [9_900, 100]))
    assert tail is not None
    assert (tail.percent, tail.at_ns, tail.beyond, tail.share, tail.time_share) == (99.9, 99 * MS, 100, 0.01, 0.5)
    assert tail.from_ns == pytest.approx(19.8 * MS, rel=0.001)


@pytest.mark.parametrize(
    ("values_ms", "counts", "why"),
    [
        ([1, 99], [99_991, 9], "fewer than ten queries are beyond"),
        ([0.02, 0.9], [99_000, 1_000], "nobody notices less than a millisecond"),
        ([10, 90], [99_000, 1_000], "nine times the mean"),
        ([1, 99], [50_000, 50_000], "the mean tells"),
    ],
)
def test_a_tail_that_is_none(values_ms: list[float], counts: list[int], why: str) -> None:
    assert hidden_tail(Histogram([round(value * MS) for value in values_ms], counts)) is None, why


def test_timeouts_are_a_tail_and_are_told_as_no_less_than_the_limit(trial: Trial) -> None:
    load(trial, Asked(), stalling(CALM, every_ms=10_000, stall_ms=2_000, late=lambda client, _: client == 0))
    found = judge("mean-hides-tail", trial)
    assert found.verdict == "found"
    assert "the longest wait ≥ 1,000 ms." in found.summary


def test_few_queries_have_no_tail(trial: Trial) -> None:
    load(trial, Asked(qps=100), CALM)
    assert judge("mean-hides-tail", trial).verdict == "cannot-tell"


# --- cold-first-interval ---


@pytest.mark.parametrize(
    ("values", "intervals"),
    [
        ([5, 1, 1, 1, 1], 1),
        ([9, 5, 1, 1, 1.1, 1, 1], 2),
        ([1.9, 1, 1, 1, 1], None),
        ([5, 1, 1, 6, 1], None),
        ([5, 1, 6, 1, 1, 1, 1], None),
        ([1, 5, 1, 1, 1, 1], None),
        ([5, 5, 5, 5, 5, 5], None),
        ([6, 5, 4, 3, 2, 1], 2),
        ([0, 0, 0, 0, 0], None),
        ([9, 1, 1, 1], None),
    ],
)
def test_cold_start(values: list[float], intervals: int | None) -> None:
    cold = cold_start(values)
    assert (cold.intervals if cold else None) == intervals


def test_a_cold_cache(trial: Trial) -> None:
    slow, fast = log_normal(4, 0.5), log_normal(0.2, 0.5)
    load(trial, Asked(qps=2_000), lambda due_ns, client: (slow if due_ns < 2 * SECOND else fast)(due_ns, client))
    found = judge("cold-first-interval", trial)
    assert found.verdict == "found"
    assert (found.evidence["cold_intervals"], found.evidence["percentile"]) == (2, 99)
    assert "options.warmup_s=4" in found.remedy


def test_queries_of_the_first_interval_that_nobody_answered(trial: Trial) -> None:
    """Half a per cent: p99 does not see them, and they are counted all the same."""
    lost = log_normal(0.2, 0.5)
    load(
        trial,
        Asked(qps=10_000, seconds=6),
        lambda due_ns, client: 2 * SECOND if due_ns < SECOND and due_ns % 20_000_000 == 0 else lost(due_ns, client),
    )
    found = judge("cold-first-interval", trial)
    assert found.verdict == "found"
    assert found.evidence["first_unanswered_percent"] == 0.5
    assert "usual_ms" not in found.evidence


def paused_at(first_ms: float, pause_ms: float) -> Server:
    """One pause of the machine, and none after."""
    return stalling(CALM, every_ms=60_000, stall_ms=pause_ms, phase_ms=first_ms, late=lambda _, number: number == 0)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at_ms=st.floats(0, 9_000),
    pause_ms=st.floats(2, 400),
    qps=st.integers(1_000, 4_000),
    seed=st.integers(0, 10**6),
    poisson=st.booleans(),
)
def test_one_pause_at_any_time_is_no_cold_start(
    shared: Trial, at_ms: float, pause_ms: float, qps: int, seed: int, poisson: bool
) -> None:
    load(shared, Asked(qps=qps, seed=seed, poisson=poisson), paused_at(at_ms, pause_ms))
    found = judge("cold-first-interval", shared)
    assert found.verdict != "found", found.summary


@pytest.mark.parametrize(("pauses_ms", "verdicts"), [([100] * 5, ["found"]), ([100, 3_100, 4_100, 5_100, 6_100], [])])
def test_pauses_that_always_come_first_are_no_chance(tmp_path: Path, pauses_ms: list[int], verdicts: list[str]) -> None:
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(["knot@system"], [100], repeats=5)))
    for trial, at_ms in zip(run.trials, pauses_ms):
        load(trial, Asked(), paused_at(at_ms, 50))
    assert [c.verdict for _, c in across("cold-first-interval", run)] == verdicts


@pytest.mark.parametrize("asked", [Asked(seconds=4), Asked(qps=20)])
def test_a_cold_first_interval_needs_intervals_and_queries(trial: Trial, asked: Asked) -> None:
    load(trial, asked, CALM)
    assert judge("cold-first-interval", trial).verdict == "cannot-tell"


# --- rate-not-sent ---


@pytest.mark.parametrize(
    ("change", "verdict"),
    [({}, "clear"), ({"sent": 9_950, "unsent": 50}, "clear"), ({"sent": 9_000, "unsent": 1_000}, "found")],
)
def test_rate_not_sent(trial: Trial, change: dict[str, int], verdict: str) -> None:
    load(trial, Asked(), CALM, **change)
    found = judge("rate-not-sent", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert (found.evidence["sent_qps"], found.evidence["missed_percent"]) == (900, -10)


def test_a_generator_that_needed_longer(trial: Trial) -> None:
    """It sent all, in 11 s instead of 10."""
    load(trial, Asked(), CALM, sending_ns=11 * SECOND)
    assert judge("rate-not-sent", trial).evidence["missed_percent"] == pytest.approx(-9.09)


def test_a_schedule_that_is_not_the_one_asked_for(trial: Trial) -> None:
    """All that was due was sent, but less was due: as if the generator began its schedule anew each second."""
    load(trial, Asked(), CALM, asked_qps=1_050.0)
    assert judge("rate-not-sent", trial).evidence["missed_percent"] == pytest.approx(-4.75, abs=0.05)


@given(rate=st.floats(1, 5_000), seconds=st.integers(1, 20), seed=st.integers(0, 10**6))
@settings(
    max_examples=examples(10, full=25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_arrivals_by_chance_are_not_a_wrong_rate(shared: Trial, rate: float, seconds: int, seed: int) -> None:
    load(shared, Asked(qps=max(1, int(rate)), seconds=seconds, poisson=True, seed=seed), lambda due_ns, client: MS)
    assert judge("rate-not-sent", shared).verdict != "found"


def test_nothing_due_is_no_rate(trial: Trial) -> None:
    load(trial, Asked(), CALM, due=0, sent=0)
    assert judge("rate-not-sent", trial).verdict == "cannot-tell"


def test_a_closed_loop_has_no_rate_to_miss(trial: Trial) -> None:
    load(trial, Asked(), CALM, model="closed", asked_qps=None)
    assert all_traps()["rate-not-sent"].after(trial) is None


# --- generator-bottleneck ---


def with_lag(p99_us: float, sent_p99_ms: float) -> dict[str, Any]:
    return {"lag_ns": {"p99": round(p99_us * 1e3)}, "sent_latency_ns": {"p99": round(sent_p99_ms * MS)}}


@pytest.mark.parametrize(
    ("change", "verdict", "told"),
    [
        ({"model": "closed", "busy_share": 0.97}, "found", "work for 97 % of the time"),
        ({"model": "closed", "busy_share": 0.9}, "clear", ""),
        ({"busy_share": 0.97}, "clear", ""),
        ({"unsent": 3}, "found", "3 of 10,000 queries were never sent"),
        (with_lag(1_200, 50), "found", "were sent 1.2 ms after they were due"),
        (with_lag(300, 2), "found", "were sent 0.3 ms after they were due"),
        (with_lag(300, 20), "clear", ""),
        (with_lag(90, 0.1), "clear", ""),
    ],
)
def test_generator_bottleneck(trial: Trial, change: dict[str, Any], verdict: str, told: str) -> None:
    load(trial, Asked(), CALM, **change)
    found = judge("generator-bottleneck", trial)
    assert found.verdict == verdict
    assert told.replace(" %", "%") in found.summary


def test_a_trial_that_is_invalid_for_it_is_told_why(trial: Trial) -> None:
    load(trial, Asked(), CALM, **with_lag(5_000, 2))
    trial.record.outcome = "invalid"
    assert judge("generator-bottleneck", trial).verdict == "found"


@pytest.mark.parametrize(("programs", "steal", "verdict"), [(300, 0, "clear"), (550, 0, "found"), (300, 80, "found")])
def test_the_instruments_cpu_is_its_own(trial: Trial, programs: int, steal: int, verdict: str) -> None:
    """The instrument uses 300 ms a second on its CPU; the primary is elsewhere."""
    trial.record.spec.hosts["primary"].cpus = [1]
    start = measured(trial, 4)
    cpu = trial.record.spec.hosts["observer"].cpus[0]
    grow = {"idle_us": 1000 - programs - steal, "iowait_us": 0, "steal_us": steal}
    columns = {f"machine__cpu{cpu}__{name}": [ms * 1000 * s for s in range(6)] for name, ms in grow.items()}
    columns["observer__cgroup__cpu_usage_us"] = [300_000 * s for s in range(6)]
    use(trial, series(start - SECOND, **columns))
    found = judge("generator-bottleneck", trial)
    assert found.verdict == verdict
    assert found.verdict == "clear" or found.evidence["foreign_percent"] == pytest.approx((programs - 300) / 10)
    trial.record.instruments["load"]["real_time"] = True
    stolen = judge("generator-bottleneck", trial).verdict == "found"
    assert stolen == (steal > 0), "in real time only the hypervisor takes what it needs"


STEPS: list[dict[str, Any]] = [
    {"rate_qps": 10_000, "holds": True},
    {"rate_qps": 40_000, "holds": False, "busy_share": 1.0, "sent_qps": 30_000},
    {"rate_qps": 20_000, "holds": True},
    {"rate_qps": 25_000, "holds": False, "loss_share": 0.05},
]


def test_of_a_ramp_the_step_counts_that_it_could_not_climb(trial: Trial) -> None:
    """The generator may be hopeless far above what the server can do: that decided nothing."""
    ramp(trial, STEPS, 20_000)
    assert [step.rate_qps for step in steps_that_decided(trial.load.steps, 20_000)] == [25_000]
    assert judge("generator-bottleneck", trial).verdict == "clear"


@pytest.mark.parametrize("fault", [{"busy_share": 0.99}, {"instrument_failed": True}, {"lag_p99_ns": 2 * MS}])
def test_a_ramp_that_the_generator_ended(trial: Trial, fault: dict[str, Any]) -> None:
    ramp(trial, [*STEPS[:3], STEPS[3] | fault], 20_000)
    found = judge("generator-bottleneck", trial)
    assert (found.verdict, found.evidence["rate_qps"]) == ("found", 25_000)
    assert "at 25,000 queries a second, where the ramp stopped" in found.summary


def test_a_lag_beside_a_far_longer_latency_is_the_servers_doing(trial: Trial) -> None:
    ramp(trial, [*STEPS[:3], STEPS[3] | {"lag_p99_ns": 2 * MS, "p99_ns": 100 * MS}], 20_000)
    assert judge("generator-bottleneck", trial).verdict == "clear"


def test_one_bad_try_of_a_rate_decides_nothing(trial: Trial) -> None:
    """Two of three tries failed by the server; but one at which it could not send ends the search."""
    ramp(trial, [*STEPS, STEPS[3] | {"repeat": 1, "busy_share": 1.0}], 20_000)
    assert judge("generator-bottleneck", trial).verdict == "clear"
    ramp(trial, [*STEPS, STEPS[3] | {"repeat": 1, "instrument_failed": True}], 20_000)
    assert judge("generator-bottleneck", trial).verdict == "found"


def test_a_ramp_that_nothing_ended(trial: Trial) -> None:
    ramp(trial, [STEPS[0], STEPS[2]], 20_000)
    assert judge("generator-bottleneck", trial).verdict == "clear"


def test_what_a_ramp_says_it_held_was_sent(trial: Trial) -> None:
    ramp(trial, STEPS, 20_000)
    assert judge("rate-not-sent", trial).verdict == "clear"
    ramp(trial, [STEPS[0], STEPS[2] | {"sent_qps": 19_000}], 20_000)
    assert judge("rate-not-sent", trial).evidence["missed_percent"] == -5
    ramp(trial, [STEPS[1]], None)
    assert judge("rate-not-sent", trial).verdict == "cannot-tell"


def test_a_loss_at_every_rate_is_no_capacity(trial: Trial) -> None:
    assert all_traps()["loss-at-every-rate"].after(trial) is None, "there was no ramp"
    ramp(trial, STEPS, 20_000)
    assert judge("loss-at-every-rate", trial).verdict == "clear"
    trial.record.instruments["load"] |= {"base_loss_share": 0.003}
    found = judge("loss-at-every-rate", trial)
    assert (found.verdict, found.evidence["base_loss_percent"]) == ("found", 0.3)
    assert "0.3 % of the queries had no answer at every rate up to 20,000 a second" in found.summary


def test_a_ramp_has_no_distribution_to_judge(trial: Trial) -> None:
    ramp(trial, STEPS, 20_000)
    for trap in ("mean-hides-tail", "blocked-thread", "cold-first-interval"):
        assert all_traps()[trap].after(trial) is None


def run_beside_echo(directory: Path, model: str, **faults: Any) -> Run:
    """Capacities: the echo server 100,000, a fast server 97,000, a slow one 50,000; another axis has no echo server."""
    plan = synthetic.Plan(servers=["echo@engine", "knot@system", "nsd@system"], zones=[100, 1000])
    run = Run.open(synthetic.build(directory, plan))
    qps = {"echo": 100_000, "knot": 97_000, "nsd": 50_000}
    for spec in run.manifest.specs.values():
        if spec.hosts[spec.subject].server.kind == "echo" and spec.dataset.zones == 100:  # type: ignore[union-attr]
            spec.hosts[spec.subject].settings = dict(faults)
    for trial in run.trials:
        kind = trial.record.spec.hosts[trial.subject].server.kind  # type: ignore[union-attr]
        if model == "ramp":
            ramp(trial, STEPS, qps[kind])
        else:
            load(trial, Asked(), CALM, model=model, answered=10 * qps[kind])
        if kind == "echo" and trial.record.spec.dataset.zones == 1000:
            trial.record.instruments.pop("load")
    return run


@pytest.mark.parametrize("model", ["ramp", "closed"])
def test_a_server_as_fast_as_the_echo_server(tmp_path: Path, model: str) -> None:
    run = run_beside_echo(tmp_path / "run", model)
    said = {
        run.manifest.specs[variant].variant.parameters["server"]: c
        for variant, c in across("generator-bottleneck", run)
    }
    assert {server: conclusion.verdict for server, conclusion in said.items()} == {
        "knot@system": "found",
        "nsd@system": "clear",
    }
    assert said["knot@system"].evidence["of_echo_percent"] == 97


def test_at_a_fixed_rate_all_answer_alike(tmp_path: Path) -> None:
    assert across("generator-bottleneck", run_beside_echo(tmp_path / "run", "rate")) == []


def test_an_echo_server_with_a_fault_is_no_floor(tmp_path: Path) -> None:
    assert across("generator-bottleneck", run_beside_echo(tmp_path / "run", "ramp", delay="10ms")) == []


@given(qps=st.floats(1, 94_000))
def test_a_slower_server_is_told_apart_from_the_echo_server(qps: float) -> None:
    assert beside_echo(qps, 100_000, "capacity_qps").verdict == "clear"


# --- udp-buffer-drops, the side of the instrument ---


def drops(trial: Trial, server: int, instrument: int, source: str = "udp") -> None:
    start, grown = measured(trial, 3), {"primary": 0, "secondary": server, "observer": instrument}
    columns = {f"{host}__udp__rcvbuf_errors": [2] * 5 for host in grown}
    columns |= {f"{host}__{source}__rcvbuf_errors": [2, 2, 2 + n, 2 + n, 2 + n] for host, n in grown.items()}
    use(trial, series(start - SECOND, **columns))


def test_answers_that_the_instrument_dropped_are_its_own_fault(trial: Trial) -> None:
    drops(trial, 0, 7)
    found = judge("udp-buffer-drops", trial)
    assert found.verdict == "found"
    assert found.evidence == {"dropped_primary": 0, "dropped_secondary": 0, "dropped_observer": 7}
    assert "the instrument's fault" in found.summary and "rmem_max" in found.remedy
    assert "rmem_default" not in found.remedy, "nothing is wrong with the server"


def test_queries_that_the_server_dropped(trial: Trial) -> None:
    drops(trial, 7, 0)
    found = judge("udp-buffer-drops", trial)
    assert "7 on the secondary" in found.summary and "fault" not in found.summary
    assert "rmem_max" not in found.remedy and "SOA" not in found.remedy


def test_what_was_dropped_over_ipv6_counts_as_well(trial: Trial) -> None:
    trial.record.spec.family = "ipv6"
    drops(trial, 7, 0, source="udp6")
    found = judge("udp-buffer-drops", trial)
    assert "7 on the secondary" in found.summary and list(found.series) == ["secondary/udp6/rcvbuf_errors"]
    assert trial.value("udp_buffer_errors") == 7


def test_a_ramp_looks_for_the_rate_at_which_the_server_drops(trial: Trial) -> None:
    ramp(trial, STEPS, 20_000)
    drops(trial, 7, 0)
    assert judge("udp-buffer-drops", trial).verdict == "clear"
    drops(trial, 7, 1)
    assert list(judge("udp-buffer-drops", trial).series) == ["observer/udp/rcvbuf_errors"]
