"""How many transfers were asked for at once and not over, in the median of the moments at which one was asked for.

With ``pipelined`` at least two: a primary on whose connections there never is more than one was not asked in a
pipeline.
"""

from __future__ import annotations

from dnsrig.analysis import transfers
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "transfers outstanding at once"
LEAST = 2.0
FEWEST = 10


def look(trial: Trial) -> Seen:
    rows = transfers.of(trial)
    if rows.height < FEWEST:
        return cannot_tell(f"there are {rows.height} transfers, too few to judge by")
    seen = transfers.number(transfers.outstanding(rows).median())
    return Seen(seen, least=LEAST, asked="pipelined", series=("transfers.arrow/asked_ns",))
