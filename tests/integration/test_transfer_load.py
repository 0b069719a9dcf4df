"""Zones taken by the instrument itself: from real primaries, from the synthetic one, and in the place of a
secondary."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick

from dnsrig.runs.trial import Trial

ZONES = 200


@pytest.mark.parametrize(
    ("server", "transport"),
    quick(
        [("bind@forky", "tcp+tsig"), ("nsd@forky", "xot (resumed)"), ("zones@engine", "xot (resumed)")],
        ("zones@engine", "xot (resumed)"),
    ),
)
def test_pipelined(measure: Callable[..., Trial], server: str, transport: str) -> None:
    trial = measure(
        f'server=["{server}"]',
        "policy=pipelined",
        f'transport=["{transport}"]',
        f"dataset.zones={ZONES}",
        "baseline={}",
        experiment="connection-policy",
    )
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    assert [phase.name for phase in record.phases] == ["setup", "measure", "drain"]
    assert trial.transfers.height == ZONES and set(trial.transfers["outcome"]) == {"done"}
    assert set(trial.transfers["serial"]) == {record.spec.dataset.serial}
    assert trial.connections.height == trial.metrics["connections_made"] == 1
    assert (trial.metrics["zones_per_s"] or 0) > ZONES / record.spec.limit_s
    assert trial.metrics["records_per_s"] and trial.metrics["transferred_mb_per_s"]
    assert trial.metrics["transfer_failures"] == 0
    assert (trial.metrics["primary_cpu_s"] or 0) > 0
    full = trial.metrics["full_handshakes"]
    assert full == (1 if transport.startswith("xot") else 0)


def test_a_connection_a_zone(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=nsd@forky",
        "policy=one",
        "transport=tcp",
        f"dataset.zones={ZONES}",
        "baseline={}",
        experiment="connection-policy",
    )
    assert trial.record.outcome == "done"
    assert trial.metrics["connections_made"] == ZONES
    assert (trial.metrics["client_time_wait_peak"] or 0) > 0, "the side that closes has them"
    assert trial.metrics["time_wait_peak"] == 0


@pytest.mark.full
def test_a_primary_that_refuses_zones_is_told_with_numbers(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=zones@engine",
        "policy=reused",
        "transport=tcp",
        "dataset.zones=20",
        "options.retries=0",
        'hosts.primary.settings.fault="servfail-after=5"',
        "baseline={}",
        experiment="connection-policy",
    )
    assert trial.record.outcome == "timeout"
    assert trial.record.reason.startswith("5 of 20 zones") and "15 servfail" in trial.record.reason
    assert trial.metrics["transfer_failures"] == 15


@pytest.mark.parametrize("provisioning", quick(["static", "catalog"], "catalog"))
def test_the_instrument_is_the_floor_of_a_cold_start(measure: Callable[..., Trial], provisioning: str) -> None:
    trial = measure("server=transfer@engine", "zones=100", f"transfer.provisioning={provisioning}")
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    assert trial.metrics["zones_seen"] == 100
    assert 0 < (trial.metrics["transfer_time_s"] or 0) < 5
    assert trial.metrics["first_answer_s"] is None, "it answers nothing"
    assert (trial.metrics["secondary_cpu_s"] or 0) > 0
    assert trial.transfers.height >= 100


@pytest.mark.full
@pytest.mark.parametrize("secondary", ["nsd@forky", "knot@forky"])
def test_a_secondary_follows_the_synthetic_primary(measure: Callable[..., Trial], secondary: str) -> None:
    trial = measure(f"server={secondary}", "zones=100", "hosts.primary.server=zones@engine")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.metrics["zones_seen"] == 100
