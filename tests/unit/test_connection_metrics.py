"""Metrics of connections: handshakes, early data, and the memory of a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic
from trial_data import clean_trial, measured, series, use

from dnsrig.metrics import all_metrics
from dnsrig.runs.trial import Trial

MEGABYTE = 1_000_000


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    found = clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))
    found.record.spec.options |= {"transport": "dot", "queries_per_connection": 0, "warmup_s": 0.0}
    return found


def value(name: str, trial: Trial) -> float | None:
    return all_metrics()[name].compute(trial)


def loaded(trial: Trial, name: str = "load", **summary: Any) -> None:
    trial.record.instruments[name] = {"model": "rate", "transport": "dot", "due": 1000, "sent": 1000, **summary}


def test_a_capacity_is_a_rate_of_connections_where_each_query_has_its_own(trial: Trial) -> None:
    loaded(trial, model="ramp", capacity_qps=1500.0)
    assert value("handshakes_per_s", trial) is None
    trial.record.spec.options["queries_per_connection"] = 1
    assert value("handshakes_per_s", trial) == 1500
    trial.record.spec.options["transport"] = "udp"
    assert value("handshakes_per_s", trial) is None


def test_what_became_of_handshakes_and_early_data(trial: Trial) -> None:
    names = ("resumed_handshakes_percent", "early_accepted_percent", "early_repeated_percent", "handshake_p50_ms")
    loaded(trial)
    assert [value(name, trial) for name in names] == [None] * 4
    made = {"handshakes": 100, "resumed": 60, "early_accepted": 30, "early_rejected": 10}
    loaded(trial, connections=made, handshake_ns={"p50": 2_500_000})
    assert [value(name, trial) for name in names] == [60, 75, 25, 2.5]
    loaded(trial, model="ramp", connections=made, handshake_ns={"p50": 2_500_000})
    assert value("handshake_p50_ms", trial) is None, "a ramp connects at many rates"


def test_memory_is_divided_by_the_connections(trial: Trial) -> None:
    start, host = measured(trial, 2), trial.subject
    columns = {
        f"{host}__cgroup__memory_anonymous_bytes": [3 * MEGABYTE, 5 * MEGABYTE, 4 * MEGABYTE],
        f"{host}__cgroup__memory_kernel_bytes": [MEGABYTE, 2 * MEGABYTE, 2 * MEGABYTE],
    }
    use(trial, series(start, **columns))
    loaded(trial, connections={"established": 100})
    assert value("memory_a_connection_bytes", trial) == pytest.approx(30_000)
    for reason in ({"warmup_s": 1.0}, {"queries_per_connection": 1}):
        before = dict(trial.record.spec.options)
        trial.record.spec.options |= reason
        assert value("memory_a_connection_bytes", trial) is None, reason
        trial.record.spec.options |= before
    loaded(trial, connections={"established": 99})
    assert value("memory_a_connection_bytes", trial) is None, "too few to tell it from other memory"
    trial.record.spec.options["clients"] = 100
    loaded(trial, connections={"established": 101})
    assert value("memory_a_connection_bytes", trial) is None, "a connection that was replaced is not open"
    loaded(trial, connections={"established": 100})
    loaded(trial, "ramp", model="ramp", capacity_qps=1500.0)
    assert value("memory_a_connection_bytes", trial) is None, "the search had connections before"
    del trial.record.instruments["ramp"]
    use(trial, series(start, **dict(list(columns.items())[:1])))
    loaded(trial, connections={"established": 100})
    assert value("memory_a_connection_bytes", trial) is None, "a part that was not sampled makes no sum"
