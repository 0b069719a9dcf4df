"""Made-up rows of a world, for tests of checks and metrics."""

from __future__ import annotations

from typing import Any

import polars as pl

from dnsrig.runs.row_files.world import NOT_IN_WORLD, QUERIES
from dnsrig.runs.trial import Trial

KIND = {
    "level": "tld",
    "rtype": 1,
    "rcode": 0,
    "dnssec_ok": True,
    "transport": "udp",
    "family": "ipv4",
    "bytes": 100,
}


def write_queries(trial: Trial, *kinds: dict[str, Any]) -> None:
    """A row for each of ``kinds``, which say at least the time and how many queries."""
    rows = pl.DataFrame([{**KIND, **kind} for kind in kinds], schema=dict(QUERIES.schema))
    rows.write_ipc_stream(trial.directory / QUERIES.name)


def write_not_in_world(trial: Trial, **names: int) -> None:
    rows = {"name": list(names), "queries": list(names.values())}
    pl.DataFrame(rows, schema=dict(NOT_IN_WORLD.schema)).write_ipc_stream(trial.directory / NOT_IN_WORLD.name)
