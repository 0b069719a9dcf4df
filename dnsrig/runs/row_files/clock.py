"""What `clock compare` saw of the clocks of other machines."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile


def of(host: str) -> RowFile:
    """One row an exchange that was made from ``host``. ``time_ns``: its middle, by our clock; ``peer``: the machine;
    ``offset_ns``: its CLOCK_MONOTONIC less ours, within half of ``rtt_ns``; ``burst``: exchanges of one comparison have
    the same, from 0."""
    schema = {
        "time_ns": pl.Int64,
        "peer": pl.String,
        **dict.fromkeys(("offset_ns", "rtt_ns"), pl.Int64),
        "burst": pl.UInt32,
    }
    return RowFile(f"clocks-{host}.arrow", schema)
