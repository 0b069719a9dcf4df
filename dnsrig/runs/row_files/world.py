"""What a world counted of the queries that came to its servers."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

QUERIES = RowFile(
    "queries.arrow",
    {
        "time_ns": pl.Int64,
        "level": pl.String,
        "rtype": pl.UInt16,
        "rcode": pl.UInt16,
        "fault": pl.String,
        "dnssec_ok": pl.Boolean,
        "transport": pl.String,
        "family": pl.String,
        "queries": pl.UInt64,
        "bytes": pl.UInt64,
    },
)
"""One row a second and kind of query. ``time_ns``: the begin of the second, of the wall clock or monotonic;
``level``: of the zone that answered: root, tld, second, none; ``fault``: of that zone, or none; ``bytes``: of the
answers."""
NOT_IN_WORLD = RowFile("not-in-world.arrow", {"name": pl.String, "queries": pl.UInt64})
"""One row a name that was asked for and that the world does not have, but for those that clients make not to exist; at
most 10,000 a thread."""
