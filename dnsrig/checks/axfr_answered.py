"""Share of AXFR requests that were answered by AXFR, in an experiment that also requests IXFR. Otherwise it would
compare AXFR with itself.

Whether IXFR is answered by IXFR is the question of such an experiment, and its result.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "AXFRs answered by AXFR"
UNIT = "% of completed AXFRs"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("axfr", {})
    if not told.get("done"):
        return cannot_tell("no AXFR was completed")
    return Seen(100 * told.get("axfr", 0) / told["done"], least=100.0, asked="AXFR")
