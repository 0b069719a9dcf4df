"""Streams replayed in the rig: a population on servers of a TLD, and a capture on a resolver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import captures
import pytest
from suites import quick

from dnsrig.analysis.read import Trial

RESOLVED = """\
title = "A capture on a resolver"
question = "Is every client answered?"
procedure = "replay"
limit_s = 60
dataset = { kind = "tiny-zones", zones = 3 }
options = { serve_as = "resolver", duration_s = 0 }
hosts.primary.server = "nsd@forky"
hosts.resolver.server = "unbound@forky"

[stream]
kind = "capture"
file = "FILE"
"""
CLIENTS, EACH, INTERVAL_NS = 40, 10, 3_000_000


def population(measure: Callable[..., Trial], *more: str) -> Trial:
    settings = (
        "dataset.delegations=500",
        "traffic=clients",
        "baseline={}",
        "stream.duration_s=1",
        "options.duration_s=1",
    )
    return measure(*settings, *more, experiment="authoritative-replay")


def passed(trial: Trial) -> dict[str, str]:
    return {check.name: check.verdict for check in trial.record.checks if check.verdict != "passed"}


@pytest.mark.parametrize("kind", quick(["bind", "knot", "nsd", "powerdns"], "knot"))
def test_a_tld_with_nsec3_answers_its_population(measure: Callable[..., Trial], kind: str) -> None:
    trial = population(measure, f"server={kind}@forky")
    load, stream = trial.load, trial.record.spec.stream
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    assert stream is not None and 0.9 * load.due <= stream.queries <= 1.1 * load.due
    # What does not exist is 16.1 % of the queries; each other name has a delegation.
    assert set(load.rcodes) == {"NOERROR", "NXDOMAIN"}
    assert 0.1 < load.rcodes["NXDOMAIN"] / load.answered < 0.25
    assert trial.value("silent_clients_percent") is not None and trial.value("cpu_a_query_us") is not None
    assert trial.record.instruments["stream"]["holds"]["stream"]["queries"] == stream.queries


@pytest.mark.full
def test_a_secondary_is_asked_by_clients_of_its_own(measure: Callable[..., Trial]) -> None:
    trial = population(measure, "options.serve_as=secondary", "server=nsd@forky", "hosts.secondary.server=knot@forky")
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    assert trial.growth("primary", "link:secondary", "rx_packets") is not None


def test_each_client_of_a_capture_is_answered_by_a_resolver(measure: Callable[..., Trial], tmp_path: Path) -> None:
    found = [
        captures.Query(
            captures.START_NS + number * INTERVAL_NS,
            f"203.0.113.{1 + number % CLIENTS}",
            40_000 + number,
            captures.message(f"z00000{number % 3}.example", number=number),
        )
        for number in range(CLIENTS * EACH)
    ]
    capture = captures.write(tmp_path / "clients.pcap", found, lambda packet: (1, captures.frame(packet)))
    experiment = tmp_path / "capture.toml"
    experiment.write_text(RESOLVED.replace("FILE", str(capture)))
    trial = measure(experiment=str(experiment))
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    kept = trial.record.instruments["stream"]["made"]
    assert kept["stream"]["queries"] == trial.load.sent == trial.load.answered == CLIENTS * EACH
    assert trial.clients["client"].n_unique() == CLIENTS
    assert trial.load.rcodes == {"NOERROR": CLIENTS * EACH}
