"""Every server as secondary and as primary: real transfers, measured end to end."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable

import pytest
from suites import quick

from dnsrig.lab import idle
from dnsrig.metrics import all_metrics
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

KINDS = sorted(kind for kind, server in all_drivers().items() if server.answers_zones and server.packages)
ZONES = 40
PRIMARY = dict(zip(KINDS, [*KINDS[1:], KINDS[0]], strict=True))
"""Secondary -> its primary: in one trial for each kind, each is both once."""
OF_OTHERS = {"resolver_cpu_s", "resolver_memory_peak_bytes", "cpu_a_query_us"}
OF_OTHERS |= {"load_time_s", "startup_time_s", "update_time_s"}
OF_OTHERS |= {name for name in all_metrics() if name.endswith(("_an_answer", "_an_answer_us"))}
"""Metrics of these files that a transfer lacks: there is no resolver, no query, no other start, and no new version."""


def transferred(measure: Callable[..., Trial], secondary: str) -> Trial:
    return measure(f"server={secondary}@forky", f"zones={ZONES}", f"hosts.primary.server={PRIMARY[secondary]}@forky")


@pytest.mark.parametrize("kind", KINDS)
def test_as_secondary_and_as_primary(measure: Callable[..., Trial], kind: str) -> None:
    trial = transferred(measure, kind)
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    assert [phase.name for phase in record.phases] == ["setup", "measure", "drain"]
    assert trial.metrics["zones_seen"] == ZONES
    assert trial.zones["outcome"].to_list() == ["seen"] * ZONES
    assert record.logs["secondary"].zones == ZONES, "the log's own account agrees with probe's"
    assert record.servers["secondary"].threads
    assert record.servers["secondary"].server.version in record.servers["secondary"].server.label
    assert {name: server.server.kind for name, server in record.servers.items()} == {
        "primary": PRIMARY[kind],
        "secondary": kind,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_are_there_and_plausible(measure: Callable[..., Trial], kind: str) -> None:
    metrics = transferred(measure, kind).metrics
    time_s = metrics["transfer_time_s"]
    assert time_s is not None and 0 < (metrics["first_answer_s"] or 0) <= time_s
    assert 1 <= (metrics["connections_opened"] or 0) <= 2 * ZONES
    assert (metrics["transfer_bytes"] or 0) > ZONES * 100
    assert (metrics["secondary_cpu_s"] or 0) > 0
    assert (metrics["secondary_memory_peak_bytes"] or 0) > 1_000_000
    of_transfers = ("transfer", "resources", "network")
    wanted = {n for n, metric in all_metrics().items() if metric.compute.__module__.endswith(of_transfers)}
    missing = {name for name in wanted if metrics[name] is None}
    assert len(wanted) > 15 and missing == OF_OTHERS


@pytest.mark.parametrize("kind", quick(KINDS, "bind"))
def test_large_zone(measure: Callable[..., Trial], kind: str) -> None:
    trial = measure(f"server={kind}@forky", "delegations=2000", "transport=tcp", experiment="tld-transfer")
    assert trial.record.outcome == "done"
    # About 49 bytes a record on the wire, after .ch: see `dnsrig generate tld --help`.
    bytes_a_record = (trial.metrics["transfer_bytes"] or 0) / trial.record.spec.dataset.records
    assert 40 < bytes_a_record < 65


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_large_zone_from_primary(measure: Callable[..., Trial], kind: str) -> None:
    trial = measure(
        "server=nsd@forky",
        "delegations=500",
        "transport=tcp",
        f"hosts.primary.server={kind}@forky",
        experiment="tld-transfer",
    )
    assert trial.record.outcome == "done"


def test_limit_is_a_result(measure: Callable[..., Trial]) -> None:
    trial = measure("server=bind@forky", "zones=300", "limit_s=3")
    record = trial.record
    assert record.outcome == "timeout"
    assert record.reason.endswith("of 300 zones after 3 s")
    assert 0 < (trial.metrics["zones_seen"] or 0) < 300
    assert trial.metrics["transfer_time_s"] is None


def test_settings_and_sysctls_reach_the_server(measure: Callable[..., Trial]) -> None:
    trial = measure(
        "server=bind@forky",
        f"zones={ZONES}",
        'hosts.secondary.settings."serial-query-rate"=10000',
        'hosts.secondary.sysctls."net.ipv4.tcp_tw_reuse"=1',
    )
    assert "serial-query-rate 10000;" in (trial.directory / "servers/secondary/named.conf").read_text()
    assert trial.record.read_back["hosts"]["secondary"]["sysctls"]["net.ipv4.tcp_tw_reuse"] == "1"
    assert not (trial.directory / "state").exists(), "what the server stored is gone"
    if os.access(idle.DEVICE, os.W_OK):
        assert trial.record.read_back["before"]["wakeup_latency_us"] == 0, "idle CPUs are kept awake"


def test_wrong_setting_is_told_in_the_servers_own_words(measure: Callable[..., Trial]) -> None:
    record = measure("server=nsd@forky", "zones=2", 'hosts.secondary.settings."no-such-thing"=1').record
    assert record.outcome == "server-failed"
    assert "nsd" in record.reason and "exited with status 1" in record.reason


@pytest.mark.full
def test_port_that_is_in_use_on_the_machine(measure: Callable[..., Trial]) -> None:
    """Fresh hosts: whatever listens on port 53 elsewhere is of no concern."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        for taken in (tcp, udp):
            with contextlib.suppress(OSError):  # taken by somebody else already: just as good
                taken.bind(("0.0.0.0", 53))
        assert measure("server=knot@forky", "zones=2").record.outcome == "done"
