"""Named sites: what a path to them is like, each with where that is known from. The table is ``sites.toml``."""

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
    """Those that differ in the other direction."""


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
    """The site called so. Raises UsageError where there is none."""
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
