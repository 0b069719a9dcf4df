"""Metrics follow the host under test and count every primary."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from trial_data import SECOND, clean_trial, measured, series, use

from dnsrig.metrics import all_metrics
from dnsrig.runs.trial import Trial, total


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


@pytest.mark.parametrize(
    ("subject", "main", "other"),
    [("secondary", "transfer_time_s", "load_time_s"), ("primary", "load_time_s", "transfer_time_s")],
)
def test_the_main_metric_is_from_exec_of_the_subject_to_its_last_zone(
    tmp_path: Path, subject: str, main: str, other: str
) -> None:
    trial = clean_trial(tmp_path / "run", synthetic.Plan(subject=subject))
    trial.record.instruments["probe"] |= {"last_seen_ns": synthetic.EXEC_NS + 3 * SECOND, "seen": 100}
    assert value(main, trial) == 3
    assert value(other, trial) is None
    assert value("zones_per_s", trial) == pytest.approx(100 / 3)
    trial.record.outcome = "timeout"
    assert value(main, trial) is None


def test_an_update_counts_from_its_command(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    # The phase begins a tenth of a second before exec.
    trial.record.instruments["probe"]["last_seen_ns"] = synthetic.EXEC_NS + 2 * SECOND
    assert value("update_time_s", trial) is None
    trial.record.spec.main_metric = "update_time_s"
    assert value("update_time_s", trial) == pytest.approx(2.1)
    trial.record.outcome = "timeout"
    assert value("update_time_s", trial) is None


def test_there_is_no_secondary_where_a_primary_loads(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run", synthetic.Plan(subject="primary"))
    start = measured(trial, 1)
    use(trial, series(start, primary__cgroup__cpu_usage_us=[0, 700_000], primary__psi__io_some_us=[5, 250_005]))
    assert value("primary_cpu_s", trial) == pytest.approx(0.7)
    assert value("io_wait_s", trial) == pytest.approx(0.25)
    assert value("secondary_cpu_s", trial) is None
    assert value("secondary_memory_peak_bytes", trial) is None
    assert value("transfer_bytes", trial) is None, "there is no link to a primary"


ARRIVED = {
    "queries": 10, "arrived": 9, "missing": 1, "encrypted": 0, "unknown": 0, "out_of_order": 2, "due_gap_ns": {},
    "gap_ns": {}, "gap_deviation_ns": {"p50": 1_500, "p99": 9_000},
}  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "instrument", "summary", "wanted"),
    [
        ("checks_answered", "interrogate", {"features": [{"verdict": v} for v in ("yes", "no", "cannot-tell")]}, 2),
        ("rrsets_lost", "records-secondary", {"outcome": "done", "rrsets_different": 3}, 3),
        ("rrsets_lost", "records-secondary", {"outcome": "timeout", "rrsets_different": 3}, None),
        ("rrsets_lost_at_primary", "records-primary", {"outcome": "done", "rrsets_different": 0}, 0),
        ("rrsets_lost_updated", "records-secondary-updated", {"outcome": "done", "rrsets_different": 1}, 1),
        ("interval_deviation_p50_us", "arrival", ARRIVED, 1.5),
        ("interval_deviation_p99_us", "arrival", ARRIVED, 9),
    ],
)
def test_a_metric_is_read_from_the_summary_of_its_instrument(
    tmp_path: Path, metric: str, instrument: str, summary: dict[str, object], wanted: float | None
) -> None:
    trial = clean_trial(tmp_path / "run")
    assert value(metric, trial) is None
    trial.record.instruments[instrument] = summary
    assert value(metric, trial) == wanted


def test_several_primaries_are_summed(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    hosts = trial.record.spec.hosts
    hosts["primary2"] = hosts["primary"].model_copy()
    start = measured(trial, 1)
    links = {f"secondary__link_{p}__{way}_bytes": [0, 100] for p in ("primary", "primary2") for way in ("rx", "tx")}
    usage = {f"{p}__cgroup__cpu_usage_us": [0, 400_000] for p in ("primary", "primary2")}
    use(trial, series(start, **links, **usage, secondary__tcp__time_wait_overflow=[3, 10]))
    assert value("transfer_bytes", trial) == 400
    assert value("primary_cpu_s", trial) == pytest.approx(0.8)
    assert value("time_wait_overflows", trial) == 7
    assert value("listen_drops", trial) is None, "a part that was not sampled makes no sum"


def test_total() -> None:
    assert total([1.0, 2.0]) == 3
    assert total([1.0, None]) is None
    assert total([]) is None
