"""Share of the due queries that were sent. The variant's name contains the rate, or a share of the capacity. Of a
stream nearly all queries must be sent, or the server does not get the clients' traffic.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "queries sent"
UNIT = "% of queries due"
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
