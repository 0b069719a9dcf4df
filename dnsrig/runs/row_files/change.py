"""What changed on a primary while others measured."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

CHANGES = RowFile(
    "changes.arrow",
    {
        "zone": pl.String,
        "kind": pl.String,
        **dict.fromkeys(("due_ns", "sent_ns", "accepted_ns"), pl.Int64),
        "rcode": pl.UInt8,
    },
)
"""One row a change. ``kind``: remove, add (of members of the catalog), touch (of a record); ``accepted_ns`` is null
where it was not."""
