"""Of the stream's queries that were due, how many left: what the server answered is else not what clients ask.

A query too long for a datagram never becomes due, and is left out.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "queries of the stream that left"
UNIT = "% of those due"
LEAST_PERCENT = 99.0


def look(trial: Trial) -> Seen:
    load = trial.load
    if not load.due:
        return cannot_tell("there is no summary of the replay")
    return Seen(100 * load.sent / load.due, least=LEAST_PERCENT, why=f"{load.due - load.sent:,} were not sent")
