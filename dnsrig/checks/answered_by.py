"""Share of completed transfers that were answered as requested: with IXFR (RFC 1995) or AXFR.

A primary may answer IXFR with the whole zone; at least 90 % must be answered as requested.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial

TITLE = "transfers answered as requested"
UNIT = "% of completed transfers"
LEAST_PERCENT = 90.0


def look(trial: Trial) -> Seen:
    done = transfers.of(trial).filter(pl.col("outcome") == "done")
    if done.is_empty():
        return cannot_tell("no transfer was completed, or transfers.arrow has no rows")
    asked = "ixfr" if trial.record.spec.transfer.ixfr else "axfr"
    seen = 100 * done.filter(pl.col("answered") == asked).height / done.height
    return Seen(seen, least=LEAST_PERCENT, asked=asked.upper(), series=("transfers.arrow/answered",))
