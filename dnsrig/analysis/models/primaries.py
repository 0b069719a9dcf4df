"""What a zone costs a primary: CPU time of its host, softirqs included, by how secondaries ask.

Medians of docs/explanation/primaries-results.md (`dnsrig run connection-policy --scale standard`: 10,000 zones of four records, one client, one CPU for the
primary). Neither many clients at the same time nor several CPUs were measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dnsrig.analysis.models.round_trips import Policy, Transport

SOURCE = "measured on a virtual machine of 2 CPUs: docs/explanation/primaries-results.md; that all sites share it equally is assumed"
RECORDS = 4
"""Of a zone there."""
RECORD_S = 0.17e-6
"""Of each further record: NSD took a tenth to a fifth of its secondaries' 6.4 to 9.8 s for 6.5 million (docs/explanation/transfer-results.md); of
the others it was not measured."""


@dataclass(frozen=True)
class Primary:
    """One kind of server as a primary; XoT with sessions resumed, None where it has no XoT."""

    title: str
    tcp_us: Mapping[Policy, float]
    xot_us: Mapping[Policy, float] | None


PRIMARIES: Mapping[str, Primary] = {
    "bind": Primary(
        "BIND", {"one": 186, "reused": 91.8, "pipelined": 115}, {"one": 627, "reused": 147, "pipelined": 98.7}
    ),
    "knot": Primary(
        "Knot DNS", {"one": 119, "reused": 55.3, "pipelined": 26.0}, {"one": 802, "reused": 62.6, "pipelined": 30.7}
    ),
    "nsd": Primary(
        "NSD", {"one": 82.8, "reused": 70.2, "pipelined": 34.4}, {"one": 930, "reused": 66.6, "pipelined": 42.1}
    ),
    "powerdns": Primary("PowerDNS", {"one": 612, "reused": 1131, "pipelined": 402}, None),
}
CHEAPEST = "knot"
"""When pipelined: what is assumed where many sites ask and nobody says whom."""


def zone_s(kind: str, policy: Policy, transport: Transport, records: float = RECORDS) -> float | None:
    """CPU time for a zone; None where that was not measured, as of a database."""
    known = PRIMARIES[kind]
    each_us = known.tcp_us if transport == "tcp" else known.xot_us or {}
    return each_us[policy] / 1e6 + max(0.0, records - RECORDS) * RECORD_S if policy in each_us else None
