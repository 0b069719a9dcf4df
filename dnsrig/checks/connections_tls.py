"""Share of the established connections of the instrument `transfer` that had a TLS handshake: all with XoT (RFC 9103),
no connection without it.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "connections with TLS"
UNIT = "% of established connections"


def look(trial: Trial) -> Seen:
    made = (
        trial.connections.filter(pl.col("established_ns") > 0)
        if not trial.connections.is_empty()
        else trial.connections
    )
    if made.is_empty():
        return cannot_tell("no connection was established, or connections.arrow has no rows")
    seen = 100 * made.filter(pl.col("handshake") != "none").height / made.height
    asked = trial.record.spec.transfer.transport
    series = ("connections.arrow/handshake",)
    if trial.record.spec.transfer.tls:
        return Seen(seen, least=100.0, asked=asked, series=series)
    return Seen(seen, most=0.0, asked=asked, series=series)
