"""Of the transfers that were done, how many were answered the way that was asked for: IXFR (RFC 1995), or AXFR.

A primary may answer IXFR with the whole zone; nine in ten must not have been.
"""

from __future__ import annotations

import polars as pl

from dnsrig.analysis import transfers
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "transfers answered as asked"
UNIT = "% of those done"
LEAST_PERCENT = 90.0


def look(trial: Trial) -> Seen:
    done = transfers.of(trial).filter(pl.col("outcome") == "done")
    if done.is_empty():
        return cannot_tell("no transfer was done, or there are no rows of them (transfers.arrow)")
    asked = "ixfr" if trial.record.spec.transfer.ixfr else "axfr"
    seen = 100 * done.filter(pl.col("answered") == asked).height / done.height
    return Seen(seen, least=LEAST_PERCENT, asked=asked.upper(), series=("transfers.arrow/answered",))
