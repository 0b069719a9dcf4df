"""Traps as pure functions: found, clear and cannot-tell, on data made for the purpose.

Each is provoked for real in tests/integration/test_traps_provoked.py.
"""

from __future__ import annotations

from pathlib import Path

import made_up_runs
import polars as pl
import pytest
import synthetic
from golden_files import hold
from trial_data import SECOND, clean_trial, judge, log_of, measured, series, use

from dnsrig.rundir import LogDrilldown, ServerLimit
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers
from dnsrig.traps import all_traps, examine


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run")


LIMIT = ServerLimit(setting="serial-query-rate", value=20, default=True, zones_per_s=20, remedy="raise it")


@pytest.mark.parametrize(
    ("zones_per_s", "cpu_us_a_second", "verdict"),
    [(20, 50_000, "found"), (20, 900_000, "clear"), (200, 50_000, "clear"), (12, 50_000, "clear")],
)
def test_server_rate_limit(trial: Trial, zones_per_s: int, cpu_us_a_second: int, verdict: str) -> None:
    trial.record.servers["secondary"].limits = [LIMIT]
    start = measured(trial, 5)
    usage = [cpu_us_a_second * s for s in range(-1, 8)]
    use(trial, series(start - SECOND, secondary__cgroup__cpu_usage_us=usage), [n / zones_per_s for n in range(100)])
    assert judge("server-rate-limit", trial).verdict == verdict


@pytest.mark.parametrize("zones", [50, 60, 70, 80, 90, 100])
@pytest.mark.parametrize("late", range(10))
def test_server_rate_limit_of_groups(trial: Trial, zones: int, late: int) -> None:
    """BIND starts ten zones every half second, and a busy machine delays one group by nearly as long."""
    trial.record.servers["secondary"].limits = [LIMIT]
    start = measured(trial, zones // 20)
    seen_s = [n // 10 * 0.5 + 0.3 * (n // 10 == late) for n in range(zones)]
    use(trial, series(start - SECOND, secondary__cgroup__cpu_usage_us=[50_000 * s for s in range(-1, 8)]), seen_s)
    assert judge("server-rate-limit", trial).verdict == "found"


def test_server_rate_limit_without_samples(trial: Trial) -> None:
    trial.record.servers["secondary"].limits = [LIMIT]
    use(trial, series(0), [n / 20 for n in range(100)])
    assert judge("server-rate-limit", trial).verdict == "cannot-tell"


def idle(
    trial: Trial, seconds: int, *, busy: float = 0.01, primary_busy: float = 0.0, moving: bool = False
) -> pl.DataFrame:
    """Samples of a trial of so long: CPU of both sides, and a link that moved all it had in the first second, or
    evenly."""
    start = measured(trial, seconds)
    ticks = range(-1, seconds + 2)
    return series(
        start - SECOND,
        secondary__cgroup__cpu_usage_us=[int(busy * 1e6 * s) for s in ticks],
        primary__cgroup__cpu_usage_us=[int(primary_busy * 1e6 * s) for s in ticks],
        secondary__link_primary__rx_bytes=[1000 * s if moving else 100_000 if s > 0 else 0 for s in ticks],
    )


@pytest.mark.parametrize(
    ("seen_s", "how", "verdict"),
    [
        ([0.1, 0.2, 61.0], {}, "found"),
        ([0.1, 0.2, 61.0], {"busy": 0.9}, "clear"),
        ([0.1, 0.2, 61.0], {"primary_busy": 0.9}, "clear"),
        ([0.1, 0.2, 61.0], {"moving": True}, "clear"),
        ([61.0], {"moving": True}, "clear"),
        ([20.0, 40.0, 61.0], {}, "found"),
        ([s / 2 for s in range(120)], {}, "clear"),
        ([0.1, 3.0], {}, "clear"),
    ],
)
def test_idle_wait(trial: Trial, seen_s: list[float], how: dict[str, float], verdict: str) -> None:
    use(trial, idle(trial, 62, **how), seen_s)  # type: ignore[arg-type]
    trial.record.servers["secondary"].limits = []
    finding = judge("idle-wait", trial)
    assert finding.verdict == verdict
    if seen_s == [0.1, 0.2, 61.0] and verdict == "found":
        assert finding.evidence["pause_s"] == pytest.approx(60.8)


def test_idle_wait_until_the_limit(trial: Trial) -> None:
    """What never came counts: the pause lasts to the end."""
    trial.record.outcome = "timeout"
    use(trial, idle(trial, 62), [0.1, 0.2])
    assert judge("idle-wait", trial).verdict == "found"


@pytest.mark.parametrize(
    ("kind", "seen_s", "setting"),
    [("nsd", [0.05, 3.1], "xfrd-reload-timeout"), ("powerdns", [1, 61], "xfr-cycle-interval")],
)
def test_idle_wait_names_the_timer(trial: Trial, kind: str, seen_s: list[float], setting: str) -> None:
    settings = {"xfrd-reload-timeout": 3} if kind == "nsd" else {}
    trial.record.servers["secondary"].limits = all_drivers()[kind].limits("secondary", settings)
    use(trial, idle(trial, 62), seen_s)
    finding = judge("idle-wait", trial)
    assert finding.verdict == "found"
    assert finding.evidence["setting"] == setting and setting in finding.summary


def test_idle_wait_after_failed_connects(trial: Trial) -> None:
    """S1: connect() fails, the rest of the zones wait for the retry timer, and then come."""
    use(trial, idle(trial, 62), [0.1, 0.2, 61.0, 61.5])
    log_of(trial, {"no free port": 98, "transfer failed": 2}, first_s=0.25)
    finding = judge("idle-wait", trial)
    assert finding.verdict == "found"
    assert finding.evidence["first_pause_begins_s"] == pytest.approx(0.2)
    assert (finding.evidence["zones_then"], finding.evidence["failed_lines"]) == (2, 100)
    assert finding.evidence["first_failure_s"] == pytest.approx(0.25)
    assert "its log reports no free port 98 times, transfer failed 2 times, first 0.25 s after exec" in finding.summary
    assert finding.evidence["log_line"] == "a line that says no free port"


def test_idle_wait_in_several_pauses(trial: Trial) -> None:
    """Each round of retries fills the ports again: none of the pauses is long, all of them are."""
    seen_s = [second + part for second in range(0, 60, 10) for part in (0.1, 1, 2, 3, 4)]
    use(trial, idle(trial, 62), seen_s)
    finding = judge("idle-wait", trial)
    assert finding.verdict == "found"
    assert finding.evidence["pauses"] == 5
    assert finding.evidence["pause_s"] == pytest.approx(6.1)
    assert float(finding.evidence["pauses_percent"] or 0) == pytest.approx(56, abs=1)


def test_soa_asked_again_is_no_transfer(trial: Trial) -> None:
    samples = idle(trial, 62)
    asked = [100_000 + 300 * s if s > 0 else 0 for s in range(-1, 64)]
    moved = series(int(samples["time_ns"].to_list()[0]), secondary__link_primary__rx_bytes=asked)
    use(trial, pl.concat([samples.filter(pl.col("metric") != "rx_bytes"), moved]), [0.1, 0.2, 61.0])
    assert judge("idle-wait", trial).verdict == "found"


def test_a_wait_for_the_disk_is_no_timer(trial: Trial) -> None:
    samples = idle(trial, 62)
    waited = series(int(samples["time_ns"].to_list()[0]), secondary__psi__io_some_us=[900_000 * s for s in range(64)])
    use(trial, pl.concat([samples, waited]), [0.1, 0.2, 61.0])
    assert judge("idle-wait", trial).verdict == "clear"


def test_idle_wait_hears_every_primary(trial: Trial) -> None:
    """One of two primaries still sends: nobody waits for a timer."""
    spec = trial.record.spec
    spec.hosts["primary2"] = spec.hosts["primary"].model_copy()
    samples = idle(trial, 62)
    start = int(samples["time_ns"].to_list()[0])
    second = {"primary2__cgroup__cpu_usage_us": [0] * 64, "secondary__link_primary2__rx_bytes": [0] * 64}
    use(trial, pl.concat([samples, series(start, **second)]), [0.1, 0.2, 61.0])
    assert judge("idle-wait", trial).verdict == "found"
    second["secondary__link_primary2__rx_bytes"] = [100_000 * s for s in range(64)]
    use(trial, pl.concat([samples, series(start, **second)]), [0.1, 0.2, 61.0])
    assert judge("idle-wait", trial).verdict == "clear"


def test_idle_wait_without_samples(trial: Trial) -> None:
    measured(trial, 62)
    use(trial, series(0), [0.1, 61.0])
    assert judge("idle-wait", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("first_s", "whole_s", "verdict"),
    [
        (0.21, 0.211, "found"),
        (0.01, 0.03, "clear"),
        (0.02, 0.021, "clear"),
        (0.1, 0.125, "found"),
        (0.099, 0.1, "clear"),
        (0.2, 0.2501, "clear"),
    ],
)
def test_silent_start(trial: Trial, first_s: float, whole_s: float, verdict: str) -> None:
    trial.record.metrics |= {"first_answer_s": first_s, "transfer_time_s": whole_s}
    assert judge("silent-start", trial).verdict == verdict


def test_silent_start_names_the_setting(trial: Trial) -> None:
    trial.record.metrics |= {"first_answer_s": 0.21, "transfer_time_s": 0.211}
    trial.record.servers["secondary"].limits = all_drivers()["knot"].limits("secondary", {})
    finding = judge("silent-start", trial)
    assert "server.async-start = off" in finding.summary and "async-start" in finding.remedy


def test_silent_start_without_data(trial: Trial) -> None:
    trial.record.metrics |= {"first_answer_s": None, "transfer_time_s": 0.2}
    assert judge("silent-start", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(("drops", "verdict"), [(6, "found"), (0, "clear")])
def test_udp_buffer_drops(trial: Trial, drops: int, verdict: str) -> None:
    start = measured(trial, 3)
    columns = {
        "secondary__udp__rcvbuf_errors": [2, 2, 2 + drops, 2 + drops, 2 + drops],
        "primary__udp__rcvbuf_errors": [0] * 5,
        "observer__udp__rcvbuf_errors": [0] * 5,
    }
    use(trial, series(start - SECOND, **columns))
    finding = judge("udp-buffer-drops", trial)
    assert finding.verdict == verdict
    if drops:
        assert finding.evidence == {"dropped_primary": 0, "dropped_secondary": 6, "dropped_observer": 0}


def test_a_server_that_loads_its_zones_need_not_read(trial: Trial) -> None:
    start = measured(trial, 3)
    columns = {f"{host}__udp__rcvbuf_errors": [0] * 5 for host in ("primary", "observer")}
    use(trial, series(start - SECOND, secondary__udp__rcvbuf_errors=[0, 0, 19, 19, 19], **columns))
    trial.record.spec = trial.record.spec.model_copy(update={"main_metric": "load_time_s"})
    assert judge("udp-buffer-drops", trial).verdict == "clear"


def test_udp_buffer_drops_without_samples(trial: Trial) -> None:
    use(trial, series(0))
    assert judge("udp-buffer-drops", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("own", "programs", "steal", "verdict"),
    [
        (800, 800, 0, "clear"),
        (500, 900, 0, "found"),
        (800, 800, 100, "found"),
        (500, 550, 20, "clear"),
        (500, 500, 0, "clear"),
        (500, 649, 0, "clear"),
        (500, 651, 0, "found"),
    ],
)
def test_cpu_contention(trial: Trial, own: int, programs: int, steal: int, verdict: str) -> None:
    """``own``, ``programs``, ``steal``: ms a second on the secondary's CPU. The ticks say something else, which may be
    wrong by half of the time."""
    start = measured(trial, 4)
    cpu = trial.record.spec.hosts["secondary"].cpus[0]
    grow = {"idle_us": 900 - programs - steal, "iowait_us": 100, "steal_us": steal}
    columns = {f"machine__cpu{cpu}__{name}": [ms * 1000 * s for s in range(6)] for name, ms in grow.items()}
    columns[f"machine__cpu{cpu}__user_us"] = [(own + 400) * 1000 * s for s in range(6)]
    usage = [own * 1000 * s for s in range(6)]
    use(trial, series(start - SECOND, secondary__cgroup__cpu_usage_us=usage, **columns))
    trial.record.read_back = {}
    assert judge("cpu-contention", trial).verdict == verdict


def test_another_trial_is_contention(trial: Trial) -> None:
    test_cpu_contention(trial, 800, 800, 0, "clear")
    trial.record.read_back = {"before": {"other_trials_running": 1}}
    assert judge("cpu-contention", trial).verdict == "found"


@pytest.mark.parametrize(("resolution_ns", "verdict"), [(SECOND, "found"), (1_000_000, "clear")])
def test_coarse_log_clock(trial: Trial, resolution_ns: int, verdict: str) -> None:
    """S1's smallest zone: started at .646, loaded "at" .000 of the same second."""
    phase = trial.measure
    assert phase is not None
    phase.start.realtime_ns = 1_728_909_632_646_000_000
    trial.record.servers["secondary"].exec_ns = phase.start.monotonic_ns
    trial.record.metrics["transfer_time_s"] = 0.2
    when = 1_728_909_632_292_000_000
    trial.record.logs = {
        "secondary": LogDrilldown(zones=1, first_realtime_ns=when, last_realtime_ns=when, resolution_ns=resolution_ns)
    }
    finding = judge("coarse-log-clock", trial)
    assert finding.verdict == verdict
    if verdict == "found":
        assert finding.evidence["time_from_log_s"] == pytest.approx(-0.354)
        assert "impossible" in finding.summary


def test_coarse_log_clock_without_times(trial: Trial) -> None:
    trial.record.metrics["transfer_time_s"] = 0.2
    trial.record.logs = {}
    assert judge("coarse-log-clock", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.0, 1.0], "found"),
        ([1.0, 1.01, 0.99, 1.0, 1.02], "clear"),
        ([66.0, 181.0, 90.0, 70.0, 150.0, 66.0, 181.0, 90.0, 70.0, 150.0], "found"),
    ],
)
def test_too_few_repeats(values: list[float], verdict: str) -> None:
    finding = all_traps()["too-few-repeats"].module.judge(values, values, "transfer_time_s")
    assert finding.verdict == verdict


def test_one_repeat_has_no_range() -> None:
    judge_values = all_traps()["too-few-repeats"].module.judge
    assert judge_values([60.21], [60.21], "transfer_time_s").summary == "There is only 1 repeat: 60.2 s."
    assert (
        judge_values([60.21, 61.0], [60.21, 61.0], "transfer_time_s").summary
        == "With only 2 repeats there is no interval, only a range from 60.2 to 61 s."
    )


def test_every_trap_says_something_of_every_trial(tmp_path: Path) -> None:
    runs = made_up_runs.of_every_kind(tmp_path)
    found = {name: examine(run) for name, run in runs.items()}
    hold(
        "traps",
        {name: [[f.trap, f.verdict, f.summary] for f in of if f.verdict != "clear"] for name, of in found.items()},
    )
    findings = [finding for of in found.values() for finding in of]
    for trap in all_traps().values():
        mine = [f for f in findings if f.trap == trap.id]
        assert mine, f"{trap.id} is silent: silence is not an answer"
        assert all(f.summary and f.remedy and f.source and f.evidence for f in mine if f.verdict == "found")
        assert all(f.summary for f in mine if f.verdict == "cannot-tell")


def test_a_primary_that_loads_its_zones_is_judged_as_such(tmp_path: Path) -> None:
    """Traps that only a transfer can fall into say nothing; the others speak of the primary."""
    plan = synthetic.Plan(subject="primary", slow={("bind@system", 100, 1): 1.5})
    findings = examine(Run.open(synthetic.build(tmp_path / "run", plan)))
    said = {finding.trap for finding in findings}
    assert not said & {"idle-wait", "silent-start", "coarse-log-clock", "ports-exhausted", "connect-port-search"}
    (cold,) = [f for f in findings if f.trap == "cold-page-cache" and f.verdict == "found"]
    assert (cold.repeat, cold.metrics) == (1, ["load_time_s", "io_wait_s"])
    assert {tuple(f.metrics) for f in findings if f.trap == "too-few-repeats"} == {("load_time_s", "time_per_zone_ms")}
