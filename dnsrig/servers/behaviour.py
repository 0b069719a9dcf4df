"""How a kind of server transfers zones, as its driver declares it: what models and traps know of it.

Policies are from the servers' sources and as measured with dnsrig; settings are named as the server names them, with
its own defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from dnsrig.rundir import Scalar

Policy = Literal["one", "reused", "pipelined", "replica", "remote"]
Soa = Literal["none", "udp", "same", "own"]
"""How a worker asks for the SOA first: not, over UDP, on the connection of the transfer, or on a connection of its
own."""
Transport = Literal["tcp", "xot"]
Settings = Mapping[str, Scalar]


@dataclass(frozen=True)
class AsSecondary:
    """How it fetches zones, and what a zone and a record cost it at no distance; functions take its settings."""

    title: str
    policy: Callable[[Settings, Transport], Policy]
    workers: Callable[[Settings], int]
    """Transfers at once from one primary; when pipelined the zones asked for at once."""
    workers_setting: str
    zone_s: float
    record_s: float | None
    """None: not measured."""
    zones_measured: int
    """The most tiny zones up to which its times were near a straight line."""
    connections: Callable[[Settings], int] = lambda settings: 1
    """That it keeps, when pipelined."""
    connections_setting: str = ""
    """Of those that it keeps for the next zone; empty: there is none."""
    soa: Callable[[Transport], Soa] = lambda transport: "none"
    """How a worker asks for it; ``none`` too where SOA queries go ahead of all transfers and wait for nobody."""
    time_wait: Callable[[Transport], bool] = lambda transport: True
    """Whether its connections stay in TIME_WAIT, so that ports run out."""


@dataclass(frozen=True)
class AsPrimary:
    """What a zone costs it: CPU time of its host, softirqs included, by how secondaries ask."""

    title: str
    tcp_us: Mapping[Policy, float]
    xot_us: Mapping[Policy, float] | None
    """With sessions resumed; None where it has no XoT."""


def count(settings: Settings, name: str, default: int) -> int:
    """A setting that is a whole number above 0; else ``default``."""
    value = settings.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
