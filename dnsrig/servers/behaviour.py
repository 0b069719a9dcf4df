"""How a kind of server transfers zones, as its driver declares it for models and traps.

Policies are from the sources of the servers and from measurements with dnsrig. Settings have the server's own names and
defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from dnsrig.rundir import Scalar

Policy = Literal["one", "reused", "pipelined", "replica", "remote"]
Soa = Literal["none", "udp", "same", "own"]
"""How a worker first queries the SOA: not at all, over UDP, on the connection of the transfer, or on a separate
connection."""
Transport = Literal["tcp", "xot"]
Settings = Mapping[str, Scalar]


@dataclass(frozen=True)
class AsSecondary:
    """How it transfers zones, and the time that a zone and a record take without distance. Functions take its
    settings."""

    title: str
    policy: Callable[[Settings, Transport], Policy]
    workers: Callable[[Settings], int]
    """Transfers at once from one primary; if pipelined, the zones requested at once."""
    workers_setting: str
    zone_s: float
    record_s: float | None
    """None: not measured."""
    zones_measured: int
    """Largest number of tiny zones up to which its times were near a straight line."""
    connections: Callable[[Settings], int] = lambda settings: 1
    """Number of connections that it keeps, if pipelined."""
    connections_setting: str = ""
    """Setting for the number of connections that it keeps for the next zone; empty: no such setting."""
    soa: Callable[[Transport], Soa] = lambda transport: "none"
    """How a worker queries the SOA; also ``none`` if SOA queries precede all transfers and do not wait for them."""
    time_wait: Callable[[Transport], bool] = lambda transport: True
    """Whether its connections stay in TIME_WAIT, so that ports run out."""


@dataclass(frozen=True)
class AsPrimary:
    """CPU time that a zone takes on its host, softirqs included, by how secondaries use connections."""

    title: str
    tcp_us: Mapping[Policy, float]
    xot_us: Mapping[Policy, float] | None
    """With resumed sessions; None if it has no XoT."""


def count(settings: Settings, name: str, default: int) -> int:
    """The value of a setting if it is a whole number above 0; otherwise ``default``."""
    value = settings.get(name, default)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
