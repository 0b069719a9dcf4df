"""Traps as pure functions: found, clear and cannot-tell, on data made for the purpose.

Each is provoked for real in tests/integration/test_traps_provoked.py.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import synthetic

from dnsrig.analysis.read import Run, Trial
from dnsrig.rundir import LogDrilldown, ServerLimit
from dnsrig.servers import all_drivers
from dnsrig.traps import Conclusion, all_traps, examine

SECOND = 1_000_000_000


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A synthetic trial of 100 zones on which everything is in order."""
    found = next(t for t in Run.open(synthetic.build(tmp_path / "run")).trials if t.record.spec.dataset.zones == 100)
    found.record.outcome = "done"
    return found


def judge(trap: str, trial: Trial) -> Conclusion:
    conclusion = all_traps()[trap].after(trial)
    assert conclusion is not None
    return conclusion


def series(start_ns: int, seconds: int, **columns: list[int]) -> pl.DataFrame:
    """Samples a second: ``host__source__metric`` -> values."""
    rows = [
        (*name.replace("link_", "link:").split("__"), start_ns + index * SECOND, value)
        for name, values in columns.items()
        for index, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema=["host", "source", "metric", "time_ns", "value"], orient="row")


def use(trial: Trial, samples: pl.DataFrame | None = None, seen_s: list[float] | None = None) -> int:
    """Put made-up rows into ``trial``; returns the start of `measure`."""
    phase = trial.measure
    assert phase is not None
    if samples is not None:
        trial.__dict__["samples"] = samples
    if seen_s is not None:
        seen = [trial.record.servers["secondary"].exec_ns + int(s * SECOND) for s in seen_s]
        trial.__dict__["zones"] = pl.DataFrame({"seen_ns": seen})
    return phase.start.monotonic_ns


def measured(trial: Trial, seconds: int) -> int:
    """Let `measure` last ``seconds``; returns its start."""
    phase = trial.measure
    assert phase is not None
    phase.end.monotonic_ns = phase.start.monotonic_ns + seconds * SECOND
    trial.record.servers["secondary"].exec_ns = phase.start.monotonic_ns
    return phase.start.monotonic_ns


LIMIT = ServerLimit(setting="serial-query-rate", value=20, default=True, zones_per_s=20, remedy="raise it")


@pytest.mark.parametrize(
    ("zones_per_s", "cpu_us_a_second", "verdict"),
    [(20, 50_000, "found"), (20, 900_000, "clear"), (200, 50_000, "clear"), (12, 50_000, "clear")],
)
def test_server_rate_limit(trial: Trial, zones_per_s: int, cpu_us_a_second: int, verdict: str) -> None:
    trial.record.servers["secondary"].limits = [LIMIT]
    start = measured(trial, 5)
    usage = [cpu_us_a_second * s for s in range(-1, 8)]
    use(trial, series(start - SECOND, 9, secondary__cgroup__cpu_usage_us=usage), [n / zones_per_s for n in range(100)])
    assert judge("server-rate-limit", trial).verdict == verdict


def test_server_rate_limit_without_samples(trial: Trial) -> None:
    trial.record.servers["secondary"].limits = [LIMIT]
    use(trial, series(0, 0), [n / 20 for n in range(100)])
    assert judge("server-rate-limit", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("peak", "failures", "reuse", "verdict"),
    [(28_232, 0, "2", "found"), (28_232, 0, "1", "clear"), (100, 3, "2", "found"), (20_000, 0, "2", "clear")],
)
def test_ports_exhausted(trial: Trial, peak: int, failures: int, reuse: str, verdict: str) -> None:
    start = measured(trial, 4)
    use(trial, series(start - SECOND, 6, secondary__sockets__tcp_time_wait=[0, 0, peak // 2, peak, peak, peak]))
    trial.record.conditions = {"hosts": {"secondary": {"sysctls": {"net.ipv4.tcp_tw_reuse": reuse}}}}
    log = LogDrilldown(zones=100, first_realtime_ns=None, last_realtime_ns=None, resolution_ns=1)
    log.failures = {"address not available": failures} if failures else {}
    trial.record.logs = {"secondary": log}
    finding = judge("ports-exhausted", trial)
    assert finding.verdict == verdict
    if peak == 28_232 and verdict == "found":
        assert finding.evidence["ports_full_s"] == 2
        assert finding.evidence["ephemeral_ports"] == 28_232, "S1's 28,231, counted inclusively"


def idle(
    trial: Trial, seconds: int, *, busy: float = 0.01, primary_busy: float = 0.0, moving: bool = False
) -> pl.DataFrame:
    """Samples of a trial of so long: CPU of both sides, and a link that moved all it had in the first second, or evenly."""
    start = measured(trial, seconds)
    ticks = range(-1, seconds + 2)
    return series(
        start - SECOND,
        seconds,
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
    trial.record.outcome = "limit"
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


def test_idle_wait_without_samples(trial: Trial) -> None:
    measured(trial, 62)
    use(trial, series(0, 0), [0.1, 61.0])
    assert judge("idle-wait", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("first_s", "whole_s", "verdict"), [(0.21, 0.211, "found"), (0.01, 0.03, "clear"), (0.02, 0.021, "clear")]
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
    }
    use(trial, series(start - SECOND, 5, **columns))
    finding = judge("udp-buffer-drops", trial)
    assert finding.verdict == verdict
    if drops:
        assert finding.evidence == {"dropped_primary": 0, "dropped_secondary": 6}


def test_udp_buffer_drops_without_samples(trial: Trial) -> None:
    use(trial, series(0, 0))
    assert judge("udp-buffer-drops", trial).verdict == "cannot-tell"


def test_ports_exhausted_without_data(trial: Trial) -> None:
    use(trial, series(0, 0))
    trial.record.logs = {}
    assert judge("ports-exhausted", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("own", "programs", "steal", "verdict"),
    [(900, 900, 0, "clear"), (500, 900, 0, "found"), (900, 900, 100, "found"), (500, 550, 20, "clear")],
)
def test_cpu_contention(trial: Trial, own: int, programs: int, steal: int, verdict: str) -> None:
    """``own``, ``programs``, ``steal``: ms a second on the secondary's CPU."""
    start = measured(trial, 4)
    cpu = trial.record.spec.hosts["secondary"].cpus[0]
    grow = {"user_us": programs, "nice_us": 0, "system_us": 0, "steal_us": steal}
    columns = {f"machine__cpu{cpu}__{name}": [ms * 1000 * s for s in range(6)] for name, ms in grow.items()}
    usage = [own * 1000 * s for s in range(6)]
    use(trial, series(start - SECOND, 6, secondary__cgroup__cpu_usage_us=usage, **columns))
    trial.record.conditions = {}
    assert judge("cpu-contention", trial).verdict == verdict


def test_another_trial_is_contention(trial: Trial) -> None:
    test_cpu_contention(trial, 900, 900, 0, "clear")
    trial.record.conditions = {"before": {"other_trials_running": 1}}
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
    finding = all_traps()["too-few-repeats"].module.judge(values)
    assert finding.verdict == verdict


def test_every_trap_says_something_of_every_trial(tmp_path: Path) -> None:
    run = Run.open(synthetic.build(tmp_path / "run"))
    findings = examine(run)
    for trap in all_traps().values():
        mine = [f for f in findings if f.trap == trap.id]
        assert mine, f"{trap.id} is silent: silence is not an answer"
        assert all(f.summary and f.remedy and f.source and f.evidence for f in mine if f.verdict == "found")
        assert all(f.summary for f in mine if f.verdict == "cannot-tell")
