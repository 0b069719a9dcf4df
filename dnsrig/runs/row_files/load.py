"""What `load` saw of its queries and their answers, beside the distributions of latency."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

INTERVALS = RowFile(
    "intervals.arrow",
    {
        "start_ns": pl.Int64,
        "duration_ns": pl.Int64,
        **dict.fromkeys(("due", "sent", "answered", "wrong", "timeouts", "lost", "late", "truncated"), pl.UInt64),
        "busy_ns": pl.Int64,
    },
    later=("wrong",),
)
"""What became of the queries that were due in each interval, one row an interval. ``busy_ns``: of the busiest
thread."""
CLIENTS = RowFile(
    "clients.arrow",
    {
        "start_ns": pl.Int64,
        **dict.fromkeys(("client", "answered", "unanswered"), pl.UInt32),
        **dict.fromkeys(("sum_ns", "max_ns"), pl.Int64),
    },
)
"""One row an interval and client. ``sum_ns`` and ``max_ns`` are from the due time, of what was not answered at the
limit."""
_OF_REPLAYS = {
    **dict.fromkeys(("timeouts", "truncated", "authenticated", "nxdomain", "servfail"), pl.UInt32),
    **dict.fromkeys(("p50_ns", "p99_ns"), pl.Int64),
    "class": pl.UInt32,
}
REPLAYED_CLIENTS = RowFile("clients.arrow", {**CLIENTS.schema, **_OF_REPLAYS}, later=tuple(_OF_REPLAYS))
"""One row a client of a replay, over all of it. ``timeouts``: of those unanswered; ``p50_ns``, ``p99_ns``: the upper
bounds of steps a quarter wide. ``class``: the number of the client's ``--class``, 0 without."""
QUERIES = RowFile(
    "queries.arrow",
    {
        "number": pl.UInt64,
        **dict.fromkeys(("due_ns", "sent_ns", "latency_ns"), pl.Int64),
        "client": pl.UInt32,
        "query": pl.UInt64,
        "outcome": pl.String,
    },
)
"""One row a query, in the order in which they were due, of loads that were to keep them (``options.query_rows``).
``number``: in the schedule of all generators; ``latency_ns``: from the due time; ``query``: its number in the file of
queries. ``sent_ns`` and ``latency_ns`` are null of one that was never sent, ``client`` of one that had none yet."""
ANSWERS = RowFile(
    "answers.arrow",
    {
        "time_ns": pl.Int64,
        **dict.fromkeys(("sent", "answered"), pl.UInt32),
        **dict.fromkeys(("first_ns", "last_ns"), pl.Int64),
    },
)
"""When queries were sent and answers came, of all clients, one row a bin of 10 ms in which anything did. ``time_ns``:
the bin's start; ``answered``: late and second answers, too; ``first_ns``, ``last_ns``: of its answers, 0 without."""
