"""Clients that announce themselves with the PROXY protocol, to each server that takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import others
import pytest
from conftest import share_of_others
from suites import quick

from dnsrig.runs import packets
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

EXPERIMENT = """
title = "Announced clients"
question = "Are announced clients answered?"
procedure = "latency"
limit_s = 60

[dataset]
kind = "tiny-zones"
zones = 3

[hosts.primary]
server = "nsd@forky"

[options]
clients = 4
rate_qps = 200
duration_s = 0.5
warmup_s = 0
proxy_protocol = true
"""
LOSES = [("bind", "resolver", "tcp")]
"""BIND 9.20.30 closes some of these connections before it answers (docs/reference/proxy-protocol.md)."""
CASES = [
    (kind, role, transport)
    for kind, server in sorted(all_drivers().items())
    for role in ("primary", "resolver")
    if role in server.roles
    for transport in sorted(server.proxied)
    if (kind, role, transport) not in LOSES
]


@pytest.mark.parametrize(
    ("kind", "role", "transport"), quick(CASES, ("nsd", "primary", "udp"), ("bind", "primary", "dot"))
)
def test_announced_clients_are_answered(
    kind: str, role: str, transport: str, tmp_path: Path, measure: Callable[..., Trial]
) -> None:
    path = tmp_path / "announced.toml"
    path.write_text(EXPERIMENT)
    host = f"hosts.{role}"
    trial = measure(
        f"{host}.server={kind}@forky",
        f"{host}.proxy_protocol=true",
        f"options.serve_as={role}",
        f"options.transport={transport}",
        experiment=str(path),
    )
    if trial.record.outcome == "invalid":
        others.skip_if_excused((), share_of_others(trial), trial.record.reason)
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.load is not None and trial.load.answered == trial.load.sent > 50


def test_a_frontend_announces_its_clients_to_the_server_behind_it(
    tmp_path: Path, measure: Callable[..., Trial]
) -> None:
    path = tmp_path / "front.toml"
    path.write_text(EXPERIMENT)
    trial = measure(
        "options.serve_as=frontend",
        "options.proxy_protocol=false",
        "hosts.primary.proxy_protocol=true",
        "hosts.frontend.server=dnsdist@forky",
        experiment=str(path),
    )
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.load is not None and trial.load.answered == trial.load.sent > 50
    assert not packets.are_counted(trial), "what dnsdist asks NSD is in the counts of its sockets"
    conf = (trial.directory / "servers/frontend/dnsdist.conf").read_text()
    assert ":8053', useProxyProtocol = true" in conf and "newPacketCache" not in conf


@pytest.mark.full
@pytest.mark.parametrize(
    ("transport", "proxied"),
    [
        *((transport, "false") for transport in ("udp", "tcp", "dot", "doh")),
        ("udp", "true"),
        ("tcp", "true"),
        ("dot", "true"),
    ],
)
def test_a_frontend_answers_over_each_transport(
    transport: str, proxied: str, tmp_path: Path, measure: Callable[..., Trial]
) -> None:
    path = tmp_path / "front.toml"
    path.write_text(EXPERIMENT)
    trial = measure(
        "options.serve_as=frontend",
        f"options.proxy_protocol={proxied}",
        f"options.transport={transport}",
        f"hosts.frontend.proxy_protocol={proxied}",
        "hosts.frontend.server=dnsdist@forky",
        "hosts.frontend.settings.cache=1000",
        experiment=str(path),
    )
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.load is not None and trial.load.answered == trial.load.sent > 50
