"""What a resolver said of itself while it was measured."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

STATISTICS = RowFile("statistics.arrow", {"time_ns": pl.Int64, "counter": pl.String, "value": pl.Float64})
"""One row a sample and counter; counters as `dnsrig.servers.resolving` names them, from the start of the server.
``time_ns``: when it was asked."""
