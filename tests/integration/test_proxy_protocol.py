"""Clients that announce themselves with the PROXY protocol, to each server that takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from suites import quick

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
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.load is not None and trial.load.answered == trial.load.sent > 50


def test_a_frontend_announces_its_clients_to_the_server_behind_it(
    tmp_path: Path, measure: Callable[..., Trial]
) -> None:
    """The example of docs/how-to/frontend.md, shortened."""
    text = Path(__file__).parents[2].joinpath("docs/how-to/frontend.md").read_text()
    path = tmp_path / "front.toml"
    path.write_text(text.partition("```toml\n")[2].partition("```")[0])
    trial = measure(
        "hosts.frontend.settings.cache=0",
        "hosts.primary.proxy_protocol=true",
        "dataset.zones=3",
        "options.duration_s=0.5",
        "options.rate_qps=200",
        "options.warmup_s=0",
        experiment=str(path),
    )
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.load is not None and trial.load.answered == trial.load.sent > 50
    conf = (trial.directory / "servers/frontend/dnsdist.conf").read_text()
    assert ":8053', useProxyProtocol = true" in conf and "newPacketCache" not in conf
