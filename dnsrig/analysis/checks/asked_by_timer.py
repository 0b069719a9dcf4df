"""Without NOTIFY: how many questions the server under test asked its primary unprompted, for each change that it then
served.

Queries over UDP and what it sent over TCP, before which no NOTIFY came, as a packet socket on its host saw them. It
finds a change by asking, so there is at least one for each.
"""

from __future__ import annotations

import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "questions by the refresh timer"
UNIT = "for a change that was served"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("told")
    seen = trial.propagation.filter(pl.col("seen_ns").is_not_null())
    served = sum(sockets.host_of(trial, secondary) == trial.subject for secondary in seen["secondary"])
    if told is None or not served:
        return cannot_tell("it served no change, or nothing watched its packets")
    return Seen(told["unprompted"] / served, least=1.0, why=f"{told['unprompted']:,} for {served:,} changes")
