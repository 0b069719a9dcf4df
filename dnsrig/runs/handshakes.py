"""TLS handshakes of the instrument `transfer`: in full, or of a resumed session (RFC 8446, 2.2). Pure."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs import transfers

FEWEST = 3
"""Such handshakes, below which there is nothing to judge."""


@dataclass(frozen=True)
class Handshakes:
    """Of the connections with TLS that were established."""

    full: int
    resumed: int
    could_resume: int
    """Begun when another connection of the same secondary had been established."""
    could_resume_full: int
    """How many of those were full all the same."""
    full_ms: float | None
    """Median time from the begin of a connection to the end of its handshake."""
    resumed_ms: float | None


def handshakes_of(connections: pl.DataFrame) -> Handshakes:
    """``connections``: those of `Trial.connections`."""
    shaken = connections.filter(pl.col("handshake").is_in(["full", "resumed"]) & (pl.col("established_ns") > 0))
    first = shaken.group_by("secondary").agg(first_ns=pl.col("established_ns").min())
    later = shaken.join(first, on="secondary").filter(pl.col("begun_ns") >= pl.col("first_ns"))
    full, resumed = (shaken.filter(pl.col("handshake") == kind) for kind in ("full", "resumed"))
    return Handshakes(
        full=full.height,
        resumed=resumed.height,
        could_resume=later.height,
        could_resume_full=later.filter(pl.col("handshake") == "full").height,
        full_ms=_median_ms(full),
        resumed_ms=_median_ms(resumed),
    )


def _median_ms(connections: pl.DataFrame) -> float | None:
    took_ns = connections["established_ns"] - connections["begun_ns"]
    return None if took_ns.is_empty() else transfers.number(took_ns.median()) / 1e6
