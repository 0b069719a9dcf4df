"""A resolver's own counters over time, as columns time_s (since the zero of its trial) and value."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.trial import Trial

NOTHING = pl.DataFrame(schema={"time_s": pl.Float64, "value": pl.Float64})


def rate(trial: Trial, counter: str) -> pl.DataFrame:
    """The growth of a counter a second; nothing of what the resolver does not count."""
    grown = _grown(trial, counter)
    return grown.select("time_s", value=pl.col("grown") / pl.col("seconds")) if grown.height else NOTHING


def share(trial: Trial, part: str, *whole: str) -> pl.DataFrame:
    """The growth of ``part`` divided by that of ``whole`` together, from sample to sample; not where that did not
    grow."""
    found = _grown(trial, part).select("time_s", part="grown")
    for number, name in enumerate(whole):
        found = found.join(_grown(trial, name).select("time_s", pl.col("grown").alias(f"of{number}")), on="time_s")
    if found.is_empty():
        return NOTHING
    total = pl.sum_horizontal(*(f"of{number}" for number in range(len(whole))))
    return found.filter(total > 0).select("time_s", value=pl.col("part") / total)


def _grown(trial: Trial, counter: str) -> pl.DataFrame:
    """From each sample to the next."""
    rows, zero_ns = trial.rows(STATISTICS), trial.zero_ns
    if zero_ns is None:
        rows = rows.clear()
    timed = rows.filter(pl.col("counter") == counter).sort("time_ns")
    return (
        timed.select(
            time_s=(pl.col("time_ns") - (zero_ns or 0)) / 1e9,
            grown=pl.col("value").diff(),
            seconds=pl.col("time_ns").diff() / 1e9,
        )
        .drop_nulls()
        .filter((pl.col("seconds") > 0) & (pl.col("grown") >= 0))
    )
