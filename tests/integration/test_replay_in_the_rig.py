"""Streams replayed in the rig: a population on servers of a TLD, and a capture on a resolver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from suites import quick

from dnsrig.lab import capture
from dnsrig.runs.trial import Trial

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


@pytest.mark.skipif(bool(capture.unavailable()), reason=str(capture.unavailable()))
def test_what_arrives_is_the_stream(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "qps=1000", "clients=100", "stream.duration_s=1", "options.duration_s=1", experiment="replay-fidelity"
    )
    assert (trial.record.outcome, passed(trial)) == ("done", {})
    arrival = trial.record.instruments["arrival"]
    assert arrival["queries"] == arrival["arrived"] == trial.load.sent and arrival["unknown"] == 0
    assert trial.value("changed_percent") == trial.value("out_of_order_percent") == 0
    assert (trial.value("interval_deviation_p99_us") or 0) > 0
    assert not list(trial.directory.glob("**/*.pcap"))


@pytest.mark.full
def test_a_secondary_is_asked_by_clients_of_its_own(measure: Callable[..., Trial]) -> None:
    trial = population(measure, "options.serve_as=secondary", "server=nsd@forky", "hosts.secondary.server=knot@forky")
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    assert trial.growth("primary", "link:secondary", "rx_packets") is not None


def resolved(measure: Callable[..., Trial], folder: Path, *more: str) -> Trial:
    """A capture of clients, each of which asks several times, on a resolver."""
    import captures  # not above: scapy, which it needs, takes a second to load in each worker

    found = [
        captures.Query(
            captures.START_NS + number * INTERVAL_NS,
            f"203.0.113.{1 + number % CLIENTS}",
            40_000 + number,
            captures.message(f"z00000{number % 3}.example", number=number),
        )
        for number in range(CLIENTS * EACH)
    ]
    file = captures.write(folder / "clients.pcap", found, lambda packet: (1, captures.frame(packet)))
    experiment = folder / "capture.toml"
    experiment.write_text(RESOLVED.replace("FILE", str(file)))
    return measure(*more, experiment=str(experiment))


def test_each_client_of_a_capture_is_answered_by_a_resolver(measure: Callable[..., Trial], tmp_path: Path) -> None:
    trial = resolved(measure, tmp_path)
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    kept = trial.record.instruments["stream"]["made"]
    assert kept["stream"]["queries"] == trial.load.sent == trial.load.answered == CLIENTS * EACH
    assert trial.clients["client"].n_unique() == CLIENTS
    assert trial.load.rcodes == {"NOERROR": CLIENTS * EACH}


@pytest.mark.full
def test_a_class_of_clients_resumes_sessions_of_a_resolver(measure: Callable[..., Trial], tmp_path: Path) -> None:
    classes = "share=50%,transport=dot,reuse=no,resumption=yes; share=20%,transport=tcp"
    trial = resolved(measure, tmp_path, f'options.classes="{classes}"', "options.timeout_s=20")
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    assert "sessions-resumed" in [check.name for check in trial.record.checks]
    rest, dot, tcp = trial.load.classes
    assert rest.clients + dot.clients + tcp.clients == CLIENTS
    assert rest.answered + dot.answered + tcp.answered == CLIENTS * EACH
    assert dot.connections.handshakes == dot.answered == EACH * dot.clients > 0
    assert dot.connections.returning == (EACH - 1) * dot.clients
    assert (rest.connections.established, tcp.connections.handshakes) == (0, 0)
    assert tcp.connections.established >= tcp.clients > 0


RAMP = ("qps=500", "clients=100", "stream.duration_s=1", "options.duration_s=1", "options.ramp_s=0.5")


def test_a_rate_that_is_held_is_measured_on_a_server_of_its_own(measure: Callable[..., Trial]) -> None:
    trial = measure(*RAMP, "options.capture=false", experiment="replay-fidelity")
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    steps = [trial.record.instruments[f"ramp-{number}"] for number in (1, 2, 3)]
    assert steps[0]["sent"] < steps[1]["sent"] < steps[2]["sent"]
    assert (trial.directory / "servers" / "primary-ramp").is_dir(), "the twin's log is kept"


@pytest.mark.full
def test_a_rate_that_is_not_held_is_refused_before_the_trial(measure: Callable[..., Trial]) -> None:
    lossy = ("hosts.primary.settings.loss=50%", "options.timeout_s=0.2", "options.capture=false")
    trial = measure(*RAMP, *lossy, experiment="replay-fidelity")
    assert trial.record.outcome == "invalid"
    assert "the rate is refused: in a ramp before the trial, at 25% of it, " in trial.record.reason
    assert "where 5 % are allowed" in trial.record.reason
    assert [phase.name for phase in trial.record.phases] == ["setup"] and "load" not in trial.record.instruments


@pytest.mark.full
@pytest.mark.alone
def test_a_flood_takes_answers_from_clients_and_passes(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=unbound@forky",
        "baseline={}",
        "stream.duration_s=6",
        "options.duration_s=6",
        "options.flood_after_s=1",
        "options.flood_s=2",
        experiment="resolver-overload",
    )
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    flooded = trial.record.instruments["flood"]
    assert flooded["rcodes"]["NXDOMAIN"] > flooded["rcodes"].get("NOERROR", 0), "few zones have a wildcard"
    assert trial.value("goodput_percent") is not None and trial.load.answered > 0


@pytest.mark.full
def test_more_clients_than_ipv4_has_addresses_for_are_answered(measure: Callable[..., Trial]) -> None:
    # Of a million clients that ask at random, one query at a time, some 85,000 do so in 90,000 queries.
    axes = ('matrix."stream.clients"=[1000000]', 'matrix."stream.qps"=[9000]')
    singly = ("stream.duration_s=10", "stream.page_share=0.0", "stream.repeats=0.0", "options.duration_s=0")
    trial = measure('family="ipv6"', *axes, *singly, experiment="replay-fidelity")
    stream = trial.record.spec.stream
    assert (trial.record.outcome, trial.record.reason, passed(trial)) == ("done", "", {})
    assert stream is not None and stream.clients > 65_534
    assert trial.load.answered == trial.load.sent == stream.queries
    assert trial.clients["client"].n_unique() == stream.clients
