"""Median number of outstanding transfers at the moments at which a transfer was requested.

With ``pipelined`` at least two: if there is never more than one on a connection, there was no pipeline.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial

TITLE = "transfers outstanding at once"
LEAST = 2.0
FEWEST = 10


def look(trial: Trial) -> Seen:
    rows = transfers.of(trial)
    if rows.height < FEWEST:
        return cannot_tell(f"there are {rows.height} transfers, which is too few")
    seen = transfers.number(transfers.outstanding(rows).median())
    return Seen(seen, least=LEAST, asked="pipelined", series=("transfers.arrow/asked_ns",))
