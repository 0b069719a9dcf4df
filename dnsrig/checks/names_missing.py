"""Share of the answers that deny the name: ``options.missing_share`` of the queries ask for such names.

A difference of 2 % of the answers is allowed: names are random, and names of queries without an answer do not count.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "answers that deny the name"
UNIT = "% of the answers"
MARGIN_PERCENT = 2.0


def look(trial: Trial) -> Seen:
    rcodes = trial.load.rcodes
    if not (answered := sum(rcodes.values())):
        return cannot_tell("the load counted no answers")
    asked = 100 * float(trial.record.spec.options["missing_share"])
    seen = 100 * rcodes.get("NXDOMAIN", 0) / answered
    return Seen(seen, least=max(0.0, asked - MARGIN_PERCENT), most=min(100.0, asked + MARGIN_PERCENT), asked=asked)
