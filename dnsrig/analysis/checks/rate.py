"""Of the queries that were due, how many the load sent: the rate is what the variant is called by, or a share of the capacity."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "queries sent"
UNIT = "% of those due"
LEAST_PERCENT = 99.0


def look(trial: Trial) -> Seen:
    due, sent = trial.load.get("due"), trial.load.get("sent")
    if not due or sent is None:
        return cannot_tell("there is no summary of the load")
    return Seen(100 * sent / due, least=LEAST_PERCENT, asked=trial.load.get("asked_qps"))
