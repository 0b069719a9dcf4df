"""Share of the load's answers that were as expected: NOERROR, or NXDOMAIN for a name that does not exist.

A server that refuses is fast. 1 % may fail; with more, the latency would be the latency of something else.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "answers with NOERROR or NXDOMAIN"
UNIT = "% of the answers"
LEAST_PERCENT = 99.0
GOOD = ("NOERROR", "NXDOMAIN")


def look(trial: Trial) -> Seen:
    rcodes = trial.load.rcodes
    if not (answered := sum(rcodes.values())):
        return cannot_tell("the load counted no answers")
    told = ", ".join(f"{count:,} {name}" for name, count in rcodes.items())
    return Seen(100 * sum(rcodes.get(name, 0) for name in GOOD) / answered, least=LEAST_PERCENT, why=told)
