"""Without NOTIFY: number of unprompted questions of the server under test to its primary, for each change that it then
served.

A packet socket on its host sees its queries over UDP and its packets over TCP that no NOTIFY preceded. Without NOTIFY a
server finds a change only by asking, so there is at least one question for each change.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial

TITLE = "questions to the primary by the refresh timer"
UNIT = "for each served change"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("told")
    seen = trial.propagation.filter(pl.col("seen_ns").is_not_null())
    served = sum(sockets.host_of(trial, secondary) == trial.subject for secondary in seen["secondary"])
    if told is None or not served:
        return cannot_tell("it served no change, or its packets were not recorded")
    return Seen(told["unprompted"] / served, least=1.0, why=f"{told['unprompted']:,} for {served:,} changes")
