"""Of the queries of the flood, how many left: it is what the server is to be overloaded with.

A tenth less is still a flood, and who sends it competes for a CPU with others. Where its names do not exist the answers
show it. In a simulated Internet a tenth of the zones has a wildcard, so some are NOERROR; more than half are not.
"""

from __future__ import annotations

from dnsrig.analysis import flood
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "queries of the flood sent"
UNIT = "% of those due"
LEAST_PERCENT = 90.0
EXISTING_SHARE_MAX = 0.5


def look(trial: Trial) -> Seen:
    load = flood.of(trial)
    if not load.due:
        return cannot_tell("there is no summary of the flood")
    existing = load.rcodes.get("NOERROR", 0)
    is_missing = trial.record.spec.options.get("flood_names", "missing") == "missing"
    if is_missing and existing > EXISTING_SHARE_MAX * load.answered:
        return Seen(0.0, least=LEAST_PERCENT, why=f"{existing:,} answers were NOERROR: their names exist")
    return Seen(100 * load.sent / load.due, least=LEAST_PERCENT, asked=load.asked_qps)
