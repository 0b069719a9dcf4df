"""Distributions of round-trip times to name servers of the Internet, as counters of resolvers show them.

What is published are classes: how many of a resolver's upstream answers came within so many milliseconds. So they count
queries, not servers, and the server's own time is in them: what is drawn from them for an address is a latency of its
answers rather than a length of cable. Within a class nothing is published. The lowest class begins, and the highest
ends, where we say: the counters have no bounds there.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsrig.errors import UsageError

Class = tuple[float, float, float]
"""From so many milliseconds to so many, and how many of the answers: percent, or any weights."""


@dataclass(frozen=True)
class Distribution:
    classes: tuple[Class, ...]
    source: str


DISTRIBUTIONS = {
    "near": Distribution(
        ((1, 10, 76.7), (10, 100, 21.2), (100, 500, 2.1), (500, 1000, 0.04)),
        "BIND's counters of upstream round trips (RESSTAT QryRTT), European-like; netdata's test data of go.d bind",
    ),
    "far": Distribution(
        ((1, 10, 0.02), (10, 100, 50.1), (100, 500, 49.8), (500, 1000, 0.08)),
        "BIND's counters of upstream round trips of 36.77 G queries in 286 days; netdata's test data of go.d bind",
    ),
    "mixed": Distribution(
        ((0.1, 1, 1.7), (1, 10, 48.7), (10, 100, 36.6), (100, 1000, 11.8), (1000, 2000, 1.2)),
        "PowerDNS Recursor's answer classes of 28.8 M queries; telegraf's test data of powerdns_recursor",
    ),
}
"""By name. Chosen by us: that the lowest class of the first two begins at 1 ms, as PowerDNS counts few below; and where
the highest of each ends."""


def distribution(name: str) -> Distribution:
    """Raises UsageError where there is none of this name."""
    if name not in DISTRIBUTIONS:
        raise UsageError(
            f"there is no distribution of round trips {name!r}", hint=f"known ones: {', '.join(DISTRIBUTIONS)}"
        )
    return DISTRIBUTIONS[name]
