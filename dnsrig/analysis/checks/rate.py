"""Of the queries that were due, how many left: the rate is what the variant is called by, or a share of the capacity.
Of a stream nearly all must leave, or what the server answers is not what clients ask."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "queries sent"
UNIT = "% of those due"
LEAST_PERCENT = 99.0


def look(trial: Trial) -> Seen:
    load = trial.load
    if not load.due:
        return cannot_tell("there is no summary of the load or replay")
    return Seen(
        100 * load.sent / load.due,
        least=LEAST_PERCENT,
        asked=load.asked_qps,
        why=f"{load.due - load.sent:,} were not sent",
    )
