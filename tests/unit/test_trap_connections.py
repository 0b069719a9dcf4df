"""Traps of connections: streams, early data, long certificate chains, and few connections for many threads.

Each is provoked for real in tests/integration/test_load_traps.py, but for the long chain: the engine's tests have the
counter that it looks at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic
from trial_data import clean_trial, judge

from dnsrig.runs.row_files.load import CLIENTS
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

TRAPS = ("stream-limit", "early-data-refused", "amplification-limit", "few-connections", "silent-connections")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


def loaded(trial: Trial, name: str = "load", **summary: Any) -> Trial:
    """With the summary of a load of a thousand queries over DoQ."""
    trial.record.instruments[name] = {"model": "rate", "transport": "doq", "due": 1000, "sent": 1000, **summary}
    return trial


def test_nothing_is_said_of_a_trial_without_load_and_of_udp(trial: Trial) -> None:
    assert [all_traps()[trap].after(trial) for trap in TRAPS] == [None] * len(TRAPS)
    loaded(trial, transport="udp", waited_for_stream=500)
    assert [all_traps()[trap].after(trial) for trap in TRAPS] == [None] * len(TRAPS)


def test_queries_that_wait_for_a_stream(trial: Trial) -> None:
    assert judge("stream-limit", loaded(trial, waited_for_stream=9)).verdict == "clear"
    found = judge("stream-limit", loaded(trial, waited_for_stream=400, connections={"established": 2}))
    assert found.verdict == "found"
    assert (found.evidence["waited_percent"], found.evidence["connections"]) == (40.0, 2)
    assert "400 of 1,000 queries (40%)" in found.summary and "clients" in found.remedy
    assert judge("stream-limit", loaded(trial, model="ramp", waited_for_stream=400)).verdict == "cannot-tell"
    assert judge("stream-limit", loaded(trial, due=0, waited_for_stream=1)).verdict == "found", "none was due in time"


def test_early_data_that_is_sent_again(trial: Trial) -> None:
    without = {"early_accepted": 0, "early_rejected": 0}
    assert all_traps()["early-data-refused"].after(loaded(trial, connections=without)) is None
    some = {"early_accepted": 95, "early_rejected": 5}
    assert judge("early-data-refused", loaded(trial, connections=some)).verdict == "clear"
    most = {"early_accepted": 10, "early_rejected": 90}
    found = judge("early-data-refused", loaded(trial, connections=most))
    assert (found.verdict, found.evidence["refused_percent"]) == ("found", 90.0)
    classes = [{"connections": some}, {"connections": most}]
    found = judge("early-data-refused", loaded(trial, classes=classes))
    assert (found.verdict, found.evidence["early_rejected"]) == ("found", 95), "classes of a replay count together"


def test_a_chain_that_does_not_fit_into_the_first_flight(trial: Trial) -> None:
    def flight(**quic: int) -> str:
        return judge("amplification-limit", loaded(trial, connections={"quic": quic})).verdict

    assert flight() == "cannot-tell"
    assert flight(full_handshake_bytes_min=3_600) == "clear"
    assert flight(full_handshake_bytes_min=3_601) == "found"
    assert flight(full_handshake_bytes_min=5_000, retries=3) == "clear", "the client has proved its address before"
    assert all_traps()["amplification-limit"].after(loaded(trial, transport="dot")) is None


@pytest.mark.parametrize(
    ("clients", "model", "verdict"),
    [(1, "ramp", "found"), (1, "closed", "found"), (4, "ramp", "clear"), (16, "ramp", "clear")],
)
def test_fewer_connections_than_threads(trial: Trial, clients: int, model: str, verdict: str) -> None:
    trial.record.spec.hosts[trial.subject].cpus = [1, 2, 3, 4]
    trial.record.spec.options |= {"clients": clients, "queries_per_connection": 0}
    found = judge("few-connections", loaded(trial, model=model))
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence == {"connections": 1, "threads": 4}
    trial.record.spec.options["queries_per_connection"] = 1
    assert judge("few-connections", trial).verdict == "clear", "each query may meet another thread"
    assert all_traps()["few-connections"].after(loaded(trial, model="rate")) is None


def test_a_search_before_the_load_counts_too(trial: Trial) -> None:
    trial.record.spec.hosts[trial.subject].cpus = [1, 2]
    trial.record.spec.options |= {"clients": 1}
    loaded(trial)
    assert judge("few-connections", loaded(trial, "ramp", model="ramp")).verdict == "found"


@pytest.mark.parametrize(
    ("answered", "verdict"),
    [
        ({0: [50, 50, 0, 0], 1: [50, 50, 50, 50]}, "found"),
        ({0: [50, 0, 0, 50], 1: [50, 50, 50, 50]}, "found"),  # after a new connection there are answers again
        ({0: [50, 50, 0, 0], 1: [50, 0, 50, 50]}, "found"),
        ({0: [50, 50, 0, 0], 1: [50, 50, 0, 0]}, "cannot-tell"),  # the server answers nobody
        ({0: [0, 0, 0, 0], 1: [50, 50, 50, 50]}, "clear"),  # never accepted: `connection-limit`
        ({0: [30, 28, 31, 20], 1: [29, 30, 20, 33]}, "clear"),  # loss everywhere
        ({0: [50, 50, 50, 50], 1: [50, 50, 50, 50]}, "clear"),
        ({0: [50, 50, 0, 0]}, "cannot-tell"),
    ],
)
def test_connections_that_fall_silent(trial: Trial, answered: dict[int, list[int]], verdict: str) -> None:
    rows = [
        {
            "start_ns": number * 10**9,
            "client": client,
            "answered": count,
            "unanswered": 50 - count,
            "sum_ns": 0,
            "max_ns": 0,
        }
        for client, counts in answered.items()
        for number, count in enumerate(counts)
    ]
    pl.DataFrame(rows, schema=CLIENTS.schema).write_ipc_stream(trial.directory / "clients.arrow")
    found = judge("silent-connections", loaded(trial))
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence["lost_queries"] == 50 * sum(counts.count(0) for counts in answered.values())
        assert "over QUIC 3.5.8 drops" in found.remedy, "what is known of this server"
    assert judge("silent-connections", loaded(trial, transport="dot")).verdict == verdict
