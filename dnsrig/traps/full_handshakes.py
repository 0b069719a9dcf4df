"""TLS sessions were to be resumed, and yet most connections paid for a full handshake.

A new connection a zone over TLS costs a signature and a key exchange each, unless it resumes the session of an earlier one (RFC 8446, 2.2), for
which the server must have given a ticket. A server without tickets, or with too few for connections made at once, makes the
resumed case the same as the new one: the experiment then compares a thing with itself.

How it is told: of the connections begun when the same secondary already had one established, and so might have had a ticket, how
many shook hands in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.analysis import transfers
from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 43
TITLE = "full TLS handshakes where sessions were to be resumed"
SOURCE = "RFC 8446, 2.2 and 4.6.1; measured: 100 and more zones a second resumed, 22 in full (NSD)"
SMALLEST_SHARE = 0.5
"""Of the handshakes that could have resumed a session."""
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


def after(trial: Trial) -> Conclusion | None:
    if trial.transfers.is_empty() or trial.record.outcome not in JUDGED or not transfers.expects_resumption(trial):
        return None
    if trial.connections.is_empty():
        return cannot_tell("There is no connections.arrow, or nothing in it.")
    found = handshakes_of(trial.connections)
    if found.full + found.resumed == 0:
        return cannot_tell("No TLS handshake was completed.")
    if found.could_resume < FEWEST or found.could_resume_full < SMALLEST_SHARE * found.could_resume:
        return CLEAR
    return _found(trial, found)


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


def _found(trial: Trial, found: Handshakes) -> Conclusion:
    took = "" if found.full_ms is None else f", {found.full_ms:,.3g} ms each in the median"
    beside = f" (a resumed one {found.resumed_ms:,.3g} ms)" if found.resumed_ms is not None else ""
    return Conclusion(
        "found",
        summary=f"{found.could_resume_full:,} of {found.could_resume:,} TLS handshakes that could have resumed a session were full{took}{beside}.",
        evidence={
            "full_handshakes": found.full,
            "resumed_handshakes": found.resumed,
            "could_have_resumed": found.could_resume,
            "full_all_the_same": found.could_resume_full,
            "full_median_ms": None if found.full_ms is None else round(found.full_ms, 3),
            "resumed_median_ms": None if found.resumed_ms is None else round(found.resumed_ms, 3),
        },
        metrics=(trial.record.spec.main_metric, "zones_per_s", "full_handshakes", "connections_made"),
        remedy="Let the primary give session tickets (BIND: session-tickets in its tls block), more of them where connections are made at once, "
        "and keep its ticket key over restarts; or keep connections open (options.policy reused or pipelined), which needs none.",
    )
