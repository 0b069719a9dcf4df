"""Queries of a resolver to the authorities of a world, while it was measured."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files.world import QUERIES
from dnsrig.runs.trial import Trial


def queries(trial: Trial) -> pl.DataFrame:
    """The rows of the seconds of `measure`, to within a second at either end; nothing where there is no world."""
    rows, phase = trial.rows(QUERIES), trial.measure
    if phase is None:
        return rows.clear()
    begun_ns, end_ns = phase.start.monotonic_ns, phase.end.monotonic_ns
    return rows.filter((pl.col("time_ns") > begun_ns - 1_000_000_000) & (pl.col("time_ns") < end_ns))


def percent(rows: pl.DataFrame, which: pl.Expr) -> float | None:
    """Share of the queries for which ``which`` is true; None without queries."""
    total = int(rows["queries"].sum())
    return 100 * int(rows.filter(which)["queries"].sum()) / total if total else None
