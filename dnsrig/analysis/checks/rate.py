"""Of the queries that were due, how many the load sent: the rate is what the variant is called by, or a share of the
capacity."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "queries sent"
UNIT = "% of those due"
LEAST_PERCENT = 99.0


def look(trial: Trial) -> Seen:
    load = trial.load
    if not load.due:
        return cannot_tell("there is no summary of the load")
    return Seen(100 * load.sent / load.due, least=LEAST_PERCENT, asked=load.asked_qps)
