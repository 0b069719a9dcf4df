"""Share of the flood's queries that were sent: they are the load that should overload the server.

With 10 % less it is still a flood, and its sender shares a CPU with others. If its names do not exist, the answers show
that. In a simulated Internet 10 % of the zones have a wildcard, so some answers are NOERROR, but not more than half.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import flood
from dnsrig.runs.trial import Trial

TITLE = "queries of the flood sent"
UNIT = "% of queries due"
LEAST_PERCENT = 90.0
EXISTING_SHARE_MAX = 0.5


def look(trial: Trial) -> Seen:
    load = flood.of(trial)
    if not load.due:
        return cannot_tell("there is no summary of the flood")
    existing = load.rcodes.get("NOERROR", 0)
    is_missing = trial.record.spec.options.get("flood_names", "missing") == "missing"
    if is_missing and existing > EXISTING_SHARE_MAX * load.answered:
        return Seen(0.0, least=LEAST_PERCENT, why=f"{existing:,} answers were NOERROR, so their names exist")
    return Seen(100 * load.sent / load.due, least=LEAST_PERCENT, asked=load.asked_qps)
