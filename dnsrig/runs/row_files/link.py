"""What went over a link that `link` emulated."""

from __future__ import annotations

import polars as pl

from dnsrig.rundir import LinkSpec
from dnsrig.runs.row_files import RowFile


def of(link: LinkSpec) -> RowFile:
    """One row a direction and interval, 0.1 s by default; the counts are of the interval, the queue is at its end.

    ``time_ns``: the end of the interval; ``direction``: forward, reverse; ``overflowed``: the queue was full.
    """
    counts = ("packets", "bytes", "delivered_packets", "delivered_bytes", "lost", "overflowed", "too_big")
    schema = {
        "time_ns": pl.Int64,
        "direction": pl.String,
        **dict.fromkeys(counts, pl.UInt64),
        **dict.fromkeys(("queue_packets", "queue_bytes", "late_ns_max"), pl.UInt32),
    }
    return RowFile(f"link-{link.name}.arrow", schema)
