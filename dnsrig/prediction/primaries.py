"""What a zone costs a primary: CPU time of its host, softirqs included, by how secondaries ask; as the servers' drivers
declare it.

Medians of docs/results/primaries.md (`dnsrig run connection-policy --scale standard`: 10,000 zones of four
records, one client, one CPU for the primary). Neither many clients at the same time nor several CPUs were measured.
"""

from __future__ import annotations

from dnsrig.servers import all_drivers
from dnsrig.servers.behaviour import AsPrimary, Policy, Transport

SOURCE = (
    "measured on a virtual machine of 2 CPUs: docs/results/primaries.md; that all sites share it equally is assumed"
)
RECORDS = 4
"""Records of a zone there."""
RECORD_S = 0.17e-6
"""CPU time of each further record: a tenth to a fifth of what a primary's secondaries took for 6.5 million, 6.4 to 9.8
s (docs/results/transfers.md); measured of one server."""


def known() -> dict[str, AsPrimary]:
    """By kind."""
    return {kind: driver.as_primary for kind, driver in all_drivers().items() if driver.as_primary is not None}


def cheapest() -> str:
    """Assumed when pipelined, if many sites ask and the kind of primary is not stated."""
    pipelined = {
        kind: primary.tcp_us["pipelined"] for kind, primary in known().items() if "pipelined" in primary.tcp_us
    }
    return min(pipelined, key=lambda kind: pipelined[kind])


def has_ixfr(kind: str | None) -> bool:
    """Whether some version of that server sends IXFR; True if no server is named."""
    return kind is None or all_drivers()[kind].support("IXFR").since("primary") is not None


def zone_s(kind: str, policy: Policy, transport: Transport, records: float = RECORDS) -> float | None:
    """CPU time for a zone; None where that was not measured, as of a database."""
    found = known()[kind]
    each_us = found.tcp_us if transport == "tcp" else found.xot_us or {}
    return each_us[policy] / 1e6 + max(0.0, records - RECORDS) * RECORD_S if policy in each_us else None
