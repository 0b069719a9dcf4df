"""Series of samples.arrow made small enough to draw: first thinned, then turned into what is shown."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dnsrig.report.charts._split import elapsed_s
from dnsrig.runs.trial import Trial

MOST_POINTS = 400
"""Most points of one line: about two for each three pixels of its width."""

BEFORE_S = 0.5
AFTER_S = 0.5
"""How much is drawn around `measure`."""


def gauge(trial: Trial, host: str, source: str, name: str) -> pl.DataFrame:
    """A gauge as columns time_s (since exec of the server under test) and value: of each stretch drawn the largest."""
    rows = _since_exec(trial, trial.series(host, source, name))
    step = _step(rows)
    return rows.group_by(pl.int_range(pl.len()) // step, maintain_order=True).agg(
        pl.col("time_s").last(), pl.col("value").max().cast(pl.Float64)
    ).select("time_s", "value")  # fmt: skip


def rate(trial: Trial, host: str, source: str, name: str) -> pl.DataFrame:
    """A counter as its growth a second: the exact mean of each stretch drawn, for it is thinned before."""
    rows = _since_exec(trial, trial.series(host, source, name))
    thin = rows.gather_every(_step(rows))
    grown = thin.select("time_s", value=pl.col("value").diff().cast(pl.Float64) / pl.col("time_s").diff())
    return grown.drop_nulls().filter(pl.col("value").is_finite())


def total(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Several gauges or rates as one: at each point of the first, the sum of what lies nearest in the others.

    `watch` reads one source after the other, so that their times differ by less than a sample's interval.
    """
    present = [rows for rows in parts if not rows.is_empty()]
    if not present:
        return pl.DataFrame(schema={"time_s": pl.Float64, "value": pl.Float64})
    summed = present[0]
    for rows in present[1:]:
        other = rows.select("time_s", other="value")
        summed = summed.join_asof(other, on="time_s", strategy="nearest").select(
            "time_s", value=pl.col("value") + pl.col("other")
        )
    return summed


def zones_done(trial: Trial) -> pl.DataFrame:
    """How many zones had been answered with the expected serial, over time."""
    start = trial.zero_ns
    if start is None:
        return pl.DataFrame(schema={"time_s": pl.Float64, "value": pl.Float64})
    seen = trial.zones.select("seen_ns").drop_nulls().sort("seen_ns")
    rows = seen.select(time_s=(pl.col("seen_ns") - start) / 1e9, value=pl.int_range(1, pl.len() + 1).cast(pl.Float64))
    if trial.zones.is_empty():
        return rows
    # From nothing at exec; and level to the end of `measure`, for a trial that hit its limit.
    end_s = elapsed_s(trial) or 0.0
    ends = [
        pl.DataFrame({"time_s": [time], "value": [value]}) for time, value in ((0.0, 0.0), (end_s, float(len(rows))))
    ]
    last = rows.tail(1)
    return pl.concat([ends[0], rows.gather_every(_step(rows)), last, ends[1]]).unique(maintain_order=True)


def _since_exec(trial: Trial, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows during `measure` and a little around it, with time_s for time_ns."""
    start = trial.zero_ns
    if start is None or trial.measure is None:
        return pl.DataFrame(schema={"time_s": pl.Float64, "value": pl.Int64})
    end_s = (trial.measure.end.monotonic_ns - start) / 1e9
    timed = rows.select(time_s=(pl.col("time_ns") - start) / 1e9, value="value")
    return timed.filter(pl.col("time_s").is_between(-BEFORE_S, end_s + AFTER_S))


def _step(rows: pl.DataFrame) -> int:
    return max(1, -(-rows.height // MOST_POINTS))
