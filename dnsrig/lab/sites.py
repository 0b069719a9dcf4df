"""What long paths are like, with sources: named sites (``sites.toml``), and distributions of round-trip times.

The distributions are about name servers of the Internet, as counters of resolvers show them. Published are classes: how
many of a resolver's upstream answers came within a number of milliseconds. So they count queries, not servers, and
include the server's own time: what is drawn from them for an address is a latency of its answers rather than a length
of cable. Within a class nothing is published. The counters have no bounds where the lowest class begins and the highest
ends: both are our choice.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dnsrig.errors import UsageError

TABLE = Path(__file__).with_name("sites.toml")
HOME = (50.11, 8.68)
"""Frankfurt, where the primaries of S4 are: latitude and longitude in degrees."""
EARTH_RADIUS_KM = 6371.0
FIBRE_KM_PER_MS = 299.792458 / 1.468
"""Speed of light in single-mode fibre, whose group index is 1.468 at 1550 nm (ITU-T G.652 fibre, data sheets)."""
STRETCH = 2.0
"""Cables follow coasts and roads and packets pass routers: so many times the way over the great circle is assumed."""


@dataclass(frozen=True)
class Site:
    """A place at the far end of a path."""

    name: str
    source: str
    forward: dict[str, Any]
    """Fields of `rundir.PathSpec`, in the direction that zones take."""
    reverse: dict[str, Any] = field(default_factory=dict)
    """The fields that differ in the other direction."""


def great_circle_km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The way over the surface between two places, each latitude and longitude in degrees (haversine formula)."""
    (lat1, lon1), (lat2, lon2) = (map(math.radians, place) for place in (one, other))
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(half))


def typical_delay_ms(distance_km: float) -> float:
    """One way: light in fibre over the great circle, times `STRETCH`. An assumption, not a measurement."""
    return STRETCH * distance_km / FIBRE_KM_PER_MS


@cache
def all_sites() -> dict[str, Site]:
    """Every site by name, in the order of the table."""
    return {name: _site(name, row) for name, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items()}


def site(name: str) -> Site:
    """Find a site by its name. Raises UsageError if there is no such site."""
    known = all_sites()
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known sites: {', '.join(known)}"
        raise UsageError(f"there is no site {name!r}", hint=hint)
    return known[name]


def _site(name: str, row: dict[str, Any]) -> Site:
    if "latitude" not in row:
        return Site(name, row["source"], row["forward"], row.get("reverse", {}))
    distance_km = great_circle_km(HOME, (row["latitude"], row["longitude"]))
    return Site(
        name,
        f"typical, not measured: {distance_km:,.0f} km over the great circle from Frankfurt, light in fibre, times {STRETCH:g}",
        {"delay_ms": round(typical_delay_ms(distance_km), 1)},
    )


RttClass = tuple[float, float, float]
"""From so many milliseconds to so many, and how many of the answers: percent, or any weights."""


@dataclass(frozen=True)
class Distribution:
    classes: tuple[RttClass, ...]
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
    """Find a distribution by its name. Raises UsageError if there is no such distribution."""
    if name not in DISTRIBUTIONS:
        raise UsageError(
            f"there is no distribution of round trips {name!r}", hint=f"known ones: {', '.join(DISTRIBUTIONS)}"
        )
    return DISTRIBUTIONS[name]
