"""Metrics follow the host under test and count every primary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic
from trial_data import SECOND, clean_trial, measured, series, use

from dnsrig.metrics import all_metrics
from dnsrig.metrics.transfer import since_exec_s
from dnsrig.rundir import QueriesSpec
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


def test_an_update_that_never_came_has_no_time(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    trial.record.spec.main_metric = "update_time_s"
    assert value("update_time_s", trial) is None
    trial.record.instruments["probe"]["last_seen_ns"] = synthetic.EXEC_NS
    trial.record.phases = []
    assert value("update_time_s", trial) is None


@pytest.mark.parametrize(
    ("model", "sent", "expected"), [("rate", 1_000, 700.0), ("ramp", 1_000, None), ("rate", 0, None)]
)
def test_cpu_time_is_divided_by_the_queries_of_a_load(
    tmp_path: Path, model: str, sent: int, expected: float | None
) -> None:
    trial = clean_trial(tmp_path / "run")
    use(trial, series(measured(trial, 1), secondary__cgroup__cpu_usage_us=[0, 700_000]))
    trial.record.instruments["load"] = {"model": model, "due": sent, "sent": sent}
    assert value("cpu_a_query_us", trial) == expected
    use(trial, series(0))
    assert value("cpu_a_query_us", trial) is None


@pytest.mark.parametrize("key", ["last_seen_ns", "first_seen_ns", "first_answer_ns"])
def test_a_moment_that_probe_did_not_see_has_no_time(tmp_path: Path, key: str) -> None:
    trial = clean_trial(tmp_path / "run")
    assert since_exec_s(trial, key) is None
    trial.record.instruments["probe"][key] = synthetic.EXEC_NS + 2 * SECOND
    assert since_exec_s(trial, key) == 2
    assert trial.server is not None and trial.measure is not None
    trial.server.exec_ns = trial.measure.start.monotonic_ns
    assert since_exec_s(trial, key) == pytest.approx(2.1)
    trial.server.exec_ns -= 1
    assert since_exec_s(trial, key) is None, "it ran before"
    trial.record.servers = {}
    assert since_exec_s(trial, key) is None


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


SUMMARIES: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    "propagation": (
        {
            "propagation_ns": {"p50": 1_500_000, "mean": 2_500_000, "p99": 9_000_000, "max": 11_000_000},
            "last_ns": {"p50": 3_000_000},
            "from_acceptance_ns": {"p50": -500_000},
            "accept_ns": {"p50": 250_000},
            "lag_ns": {"max": 4_000_000},
            "resolution_ns": {"p50": 100_000, "max": 200_000},
            "seen": 7,
            "unseen": 1,
        },
        {
            "propagation_p50_ms": 1.5, "propagation_mean_ms": 2.5, "propagation_p99_ms": 9, "propagation_max_ms": 11,
            "propagation_last_p50_ms": 3, "propagation_after_acceptance_p50_ms": -0.5, "update_accepted_p50_ms": 0.25,
            "change_lag_max_ms": 4, "propagation_resolution_p50_ms": 0.1, "propagation_resolution_max_ms": 0.2,
            "unseen_changes_percent": 12.5,
        },
    ),
    "ixfr": (
        {"done": 2, "ixfr": 1, "axfr": 3, "bytes": 1_000, "messages": 4, "transfer_ns": {"p50": 2_000_000}},
        {"ixfr_time_ms": 2, "ixfr_bytes": 500, "ixfr_messages": 2, "ixfr_whole_percent": 75},
    ),
    "axfr": (
        {"done": 4, "ixfr": 0, "axfr": 4, "bytes": 8_000, "messages": 40, "transfer_ns": {"p50": 8_000_000}},
        {"axfr_time_ms": 8, "axfr_bytes": 2_000, "axfr_messages": 10},
    ),
    "compare-answers": ({"different": 3, "unanswered": 2}, {"answers_different": 3, "answers_from_neither": 2}),
    "arrival": (
        ARRIVED | {"encrypted": 2},
        {"out_of_order_percent": 200 / 7, "changed_percent": 12.5},
    ),
    "transfer": (
        {
            "elapsed_ns": 2_000_000_000, "done": 10, "records": 600, "bytes": 3_000_000, "failed": 1, "retries": 4,
            "transfer_ns": {"p50": 1_000_000, "p99": 7_000_000}, "cpu_ns": 5_000_000, "busy_share": 0.25,
            "connections": {"established": 3, "full_handshakes": 2},
        },
        {
            "zones_per_s": 5, "records_per_s": 300, "transferred_mb_per_s": 1.5, "transfer_p50_ms": 1,
            "transfer_p99_ms": 7, "connections_made": 3, "full_handshakes": 2, "transfer_failures": 1,
            "transfer_retries": 4, "client_cpu_us_per_zone": 500, "meanwhile_zones_per_s": 5,
            "meanwhile_mb_per_s": 1.5, "meanwhile_busy_percent": 25,
        },
    ),
    "load": (
        {
            "model": "rate", "timeout_ns": 1_000_000_000, "start_ns": 0, "end_ns": 2_000_000_000, "asked_qps": 500.0,
            "due": 1_000, "sent": 1_000, "answered": 980, "timeouts": 10, "lost": {"closed": 5}, "wrong": {"empty": 3},
            "latency_ns": {
                "p50": 200_000, "p90": 400_000, "p99": 3_000_000, "p99_9": 50_000_000, "p99_99": 1_200_000_000,
                "max": 1_300_000_000, "mean": 1_500_000,
            },
            "sent_latency_ns": {"p99": 2_900_000, "p50": 100_000},
            "lag_ns": {"p50": 5_000, "p99": 60_000},
        },
        {
            "p50_ms": 0.2, "p90_ms": 0.4, "p99_ms": 3, "p99_9_ms": 50, "p99_99_ms": 1_000, "max_ms": 1_000, "mean_ms": 1.5,
            "sent_p99_ms": 2.9, "send_lag_p50_us": 5, "send_lag_p99_us": 60, "asked_qps": 500, "answered_qps": 490,
            "unanswered_share_percent": 1.5, "wrong_share_percent": 0.3,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("instrument", SUMMARIES)
def test_each_figure_of_a_summary_is_a_metric(tmp_path: Path, instrument: str) -> None:
    trial = clean_trial(tmp_path / "run")
    spec, (summary, expected) = trial.record.spec, SUMMARIES[instrument]
    spec.main_metric, spec.options["transfers"] = "zones_per_s", "one"
    spec.queries = QueriesSpec(parameters={"expect": "noerror-nonempty"})
    assert {name: value(name, trial) for name in expected} == dict.fromkeys(expected)
    trial.record.instruments[instrument] = summary
    assert {name: value(name, trial) for name in expected} == pytest.approx(expected)


def test_ixfr_is_compared_with_axfr(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    names = ("ixfr_time_percent", "ixfr_bytes_percent")
    for instrument in ("ixfr", "axfr"):
        assert [value(name, trial) for name in names] == [None, None]
        trial.record.instruments[instrument] = SUMMARIES[instrument][0]
    assert [value(name, trial) for name in names] == [25, 25]
    trial.record.instruments["axfr"] = SUMMARIES["axfr"][0] | {"done": 0}
    assert [value(name, trial) for name in names] == [None, None]


def test_a_summary_of_nothing_has_no_shares(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    trial.record.instruments |= {
        "propagation": {"seen": 0, "unseen": 0},
        "arrival": ARRIVED | {"encrypted": 10},
        "transfer": {"elapsed_ns": 0, "done": 0, "cpu_ns": 7, "transfer_ns": {"p50": 1}},
        "load": {"model": "rate", "sent": 0, "start_ns": 5, "end_ns": 5},
    }
    trial.record.spec.main_metric = "zones_per_s"
    names = (
        "unseen_changes_percent", "changed_percent", "zones_per_s", "transfer_p50_ms", "client_cpu_us_per_zone",
        "unanswered_share_percent", "answered_qps", "meanwhile_zones_per_s",
    )  # fmt: skip
    assert [value(name, trial) for name in names] == [None] * len(names)


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
