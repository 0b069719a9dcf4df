"""Trials over IPv6: every server answers and transfers over it, and nothing goes over IPv4."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import quick
from test_traps_provoked import finding

from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

KINDS = sorted(kind for kind, server in all_drivers().items() if server.answers_zones and server.packages)
TRANSFERS = [(kind, "tcp") for kind in KINDS]
TRANSFERS += [(kind, "xot+tsig") for kind in KINDS if all_drivers()[kind].support("XoT").secondary]
Measure = Callable[..., Trial]


def went_over_ipv6(trial: Trial) -> bool:
    """As the kernels counted the datagrams of all hosts, and listed their connections."""
    hosts = trial.record.spec.hosts
    ipv4, ipv6 = (sum(trial.growth(host, source, "in_datagrams") or 0 for host in hosts) for source in ("udp", "udp6"))
    remotes = trial.sockets["remote"].to_list() if trial.sockets.height else []
    assert all(sockets.host_of(trial, remote) and remote.startswith("[") for remote in remotes)
    return ipv4 == 0 < ipv6


@pytest.mark.parametrize(("kind", "transport"), quick(TRANSFERS, ("knot", "tcp")))
def test_zones_come_over_ipv6(measure: Measure, kind: str, transport: str) -> None:
    """The server is primary and secondary at once."""
    settings = ("family=ipv6", "zones=30", f"transfer.transport={transport}")
    trial = measure(*settings, f"server={kind}@forky", f"hosts.primary.server={kind}@forky")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.record.spec.family == "ipv6" and went_over_ipv6(trial)


OTHERS = [
    ("propagation", ("server=bind@forky", "secondaries=4", "changes=single")),
    ("propagation", ("server=nsd@forky", "secondaries=1", "changes=refresh")),
    ("fan-out", ("server=zones@engine", "secondaries=10", "by=AXFR", "limits=raised")),
    ("resolver-cache", ("transport=udp", "names=cached", "options.duration_s=1", "options.warmup_s=1")),
]


@pytest.mark.parametrize(("experiment", "settings"), quick(OTHERS, OTHERS[3]))
def test_other_procedures_over_ipv6(measure: Measure, experiment: str, settings: tuple[str, ...]) -> None:
    trial = measure("family=ipv6", "baseline={}", *settings, experiment=experiment)
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert went_over_ipv6(trial)
    assert {check.name: check.verdict for check in trial.record.checks if check.verdict != "passed"} == {}


NARROW = ("family=ipv6", "transport=tcp", "mss=untouched", "baseline={}", "dataset.delegations=1000")


@pytest.mark.full
@pytest.mark.parametrize("icmp", ["sent", "blocked"])
def test_a_path_tells_the_sender_of_packets_that_are_too_big(measure: Measure, icmp: str) -> None:
    trial = measure(*NARROW, f"icmp={icmp}", "path.delay_ms=10", "limit_s=6", experiment="mtu-mss")
    assert trial.record.outcome == ("done" if icmp == "sent" else "timeout"), trial.record.reason
    found = finding("mss-above-path-mtu", trial)
    assert found.verdict == "found" and int(found.evidence["too_big_packets"] or 0) > 0
    assert found.evidence["mss_fits_bytes"] == 1300 - 40 - 20


@pytest.mark.full
@pytest.mark.parametrize("mss", ["advmss", "clamp"])
def test_smaller_segments_pass_behind_larger_headers(measure: Measure, mss: str) -> None:
    settings = (setting for setting in NARROW if not setting.startswith("mss="))
    trial = measure(*settings, f"mss={mss}", "icmp=blocked", "path.delay_ms=10", "limit_s=6", experiment="mtu-mss")
    assert (trial.record.outcome, finding("mss-above-path-mtu", trial).verdict) == ("done", "clear")
