"""How servers fetch zones as secondaries: policy, workers, SOA, and what a zone and a record cost them at no distance.

Policies are from the servers' sources and as measured with dnsrig; settings are named as the server names them, with its own defaults.
The work is of the machine that docs/explanation/transfer-results.md describes (one CPU for the server, storage in memory): on
another machine take it from a run of that machine's own (`fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dnsrig.analysis.models.round_trips import Policy, Soa, Transport
from dnsrig.rundir import Scalar

Settings = Mapping[str, Scalar]
WORK_SOURCE = "measured on a virtual machine of 2 CPUs: docs/explanation/transfer-results.md"
WORK_FACTOR = 3.0
"""Assumed: machines differ by so much."""
RECORDS_MEASURED = 6_500_000
"""Of the large zone that the time of a record is from."""


@dataclass(frozen=True)
class Secondary:
    """One kind of server as a secondary; functions take its settings."""

    title: str
    policy: Callable[[Settings, Transport], Policy]
    workers: Callable[[Settings], int]
    """Transfers at once from one primary; when pipelined the zones asked for at once."""
    connections: Callable[[Settings], int]
    """That it keeps, when pipelined."""
    soa: Callable[[Transport], Soa]
    """How a worker asks for it; ``none`` too where SOA queries go ahead of all transfers and wait for nobody."""
    workers_setting: str
    time_wait: Callable[[Transport], bool]
    """Whether its connections stay in TIME_WAIT, so that ports run out."""
    zone_s: float
    record_s: float | None
    """None: not measured."""
    zones_measured: int
    """The most tiny zones up to which its times were near a straight line."""
    source: str


def _number(settings: Settings, name: str, default: int) -> int:
    value = settings.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def _bind_workers(settings: Settings) -> int:
    return min(_number(settings, "transfers-per-ns", 2), _number(settings, "transfers-in", 10))


def _knot_policy(settings: Settings, transport: Transport) -> Policy:
    """Knot keeps connections only if told to, and only without TLS."""
    return "reused" if transport == "tcp" and _number(settings, "server.remote-pool-limit", 0) else "one"


def _nsd_connections(settings: Settings) -> int:
    return _number(settings, "xfrd-tcp-max", 128)


SECONDARIES: Mapping[str, Secondary] = {
    "bind": Secondary(
        title="BIND",
        policy=lambda settings, transport: "one",
        workers=_bind_workers,
        connections=lambda settings: 1,
        soa=lambda transport: "none",
        workers_setting="transfers-per-ns and transfers-in",
        time_wait=lambda transport: True,
        zone_s=0.5e-3,
        record_s=1.5e-6,
        zones_measured=10_000,
        source="BIND 9 Administrator Reference Manual: transfers-per-ns, transfers-in",
    ),
    "knot": Secondary(
        title="Knot DNS",
        policy=_knot_policy,
        workers=lambda settings: _number(settings, "server.background-workers", 10),
        connections=lambda settings: 1,
        soa=lambda transport: "own" if transport == "xot" else "udp",
        workers_setting="server.background-workers",
        time_wait=lambda transport: transport == "tcp",
        zone_s=0.27e-3,
        record_s=1.0e-6,
        zones_measured=10_000,
        source="Knot DNS manual: background-workers, remote-pool-limit",
    ),
    "nsd": Secondary(
        title="NSD",
        policy=lambda settings, transport: "pipelined",
        workers=lambda settings: _nsd_connections(settings) * _number(settings, "xfrd-tcp-pipeline", 128),
        connections=_nsd_connections,
        soa=lambda transport: "none",
        workers_setting="xfrd-tcp-max and xfrd-tcp-pipeline",
        time_wait=lambda transport: True,
        zone_s=0.15e-3,
        record_s=1.2e-6,
        zones_measured=30_000,
        source="nsd.conf(5): xfrd-tcp-max, xfrd-tcp-pipeline",
    ),
    "powerdns": Secondary(
        title="PowerDNS",
        policy=lambda settings, transport: "one",
        workers=lambda settings: _number(settings, "retrieval-threads", 2),
        connections=lambda settings: 1,
        soa=lambda transport: "none",
        workers_setting="retrieval-threads",
        time_wait=lambda transport: True,
        zone_s=0.8e-3,
        record_s=None,
        zones_measured=3_000,
        source="PowerDNS Authoritative Server manual: retrieval-threads",
    ),
}


def workers_of(kind: str, settings: Settings) -> int | None:
    """How many transfers a secondary of that kind has under way at once; None of a kind that is not known."""
    known = SECONDARIES.get(kind)
    return known.workers(settings) if known else None
