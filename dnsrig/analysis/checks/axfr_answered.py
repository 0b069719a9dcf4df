"""Of the transfers that were asked for as AXFR, beside those as IXFR, how many were answered by AXFR: else a thing is
compared with itself.

Whether IXFR is answered by IXFR is the question of such an experiment, and its result.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "AXFRs answered by AXFR"
UNIT = "% of those done"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("axfr", {})
    if not told.get("done"):
        return cannot_tell("no AXFR was done")
    return Seen(100 * told.get("axfr", 0) / told["done"], least=100.0, asked="AXFR")
