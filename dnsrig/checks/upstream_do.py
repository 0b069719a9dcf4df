"""Share of the resolver's queries to authorities that requested signatures (DO, RFC 3225), as counted by the world.

At the level without DO no query has it. At the other levels all queries have it, except that a query without EDNS may
follow one that got no answer in time; so 10 % may lack it.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import upstream
from dnsrig.runs.row_files.world import QUERIES
from dnsrig.runs.trial import Trial

TITLE = "queries to authorities with DO"
UNIT = "%"
LEAST_PERCENT = 90.0
MOST_PERCENT = 0.0


def look(trial: Trial) -> Seen:
    asked = trial.record.spec.hosts[trial.subject].resolving
    seen = upstream.percent(upstream.queries(trial), pl.col("dnssec_ok"))
    if asked is None or seen is None:
        return cannot_tell("the world counted no queries")
    if asked.level == "no-do":
        return Seen(seen, most=MOST_PERCENT, asked=asked.level, series=(QUERIES.name,))
    return Seen(seen, least=LEAST_PERCENT, asked=asked.level, series=(QUERIES.name,))
