"""Number of queries that reached the servers of faulty zones, to which the flood's queries should lead.

A resolver that has learned that a server is dead need not ask it again, so there is no minimum share. But if no query
arrived, nothing met the fault. For a baseline zone without a real fault (`slow` by 0 ms) the queries are counted as
well.
"""

from __future__ import annotations

import polars as pl

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import upstream
from dnsrig.runs.row_files.world import QUERIES
from dnsrig.runs.trial import Trial

TITLE = "queries to servers of faulty zones"


def look(trial: Trial) -> Seen:
    if trial.rows(QUERIES).is_empty():
        return cannot_tell("the world counted no queries")
    met = upstream.queries(trial).filter(pl.col("fault") != "none")
    return Seen(int(met["queries"].sum()), least=1, series=(QUERIES.name,))
