"""What `probe` saw of zones: when they became visible, how changes spread, when an answer became another."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

ZONES = RowFile(
    "zones.arrow",
    {
        "zone": pl.String,
        "last_unseen_ns": pl.Int64,
        "seen_ns": pl.Int64,
        "polls": pl.UInt32,
        "serial": pl.UInt32,
        "outcome": pl.String,
    },
)
"""One row a zone. ``seen_ns`` is null where it never was."""
PROPAGATION = RowFile(
    "propagation.arrow",
    {
        "change": pl.UInt32,
        "zone": pl.String,
        "serial": pl.UInt32,
        "secondary": pl.String,
        "rcode": pl.UInt8,
        **dict.fromkeys(("due_ns", "changed_ns", "accepted_ns", "last_unseen_ns", "seen_ns"), pl.Int64),
    },
)
"""One row a change and secondary; times as the help of `propagation` defines them. ``seen_ns`` is null where it never
was."""
FOLLOWED = RowFile(
    "followed.arrow",
    {
        "zone": pl.String,
        "before_ns": pl.Int64,
        "seen_ns": pl.Int64,
        "served": pl.Boolean,
        "serial": pl.UInt32,
    },
)
"""One row each time that the answer for a zone became another. ``before_ns``: when it was last asked and still answered
as before (null: the first answer); ``serial`` is null where the zone is not served."""
