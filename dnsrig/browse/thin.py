"""Long series made small enough to draw, without hiding an extreme: of each stretch of time that becomes a pixel or
two, the smallest and the largest value stay, each at its own time.

Rows may come piece by piece; what is kept is bounded by the lines and the stretches, not by the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

BUCKETS = 560
"""Stretches: as many as the plotting area of a chart has pixels."""
KEY = ("host", "source", "metric")


@dataclass(frozen=True)
class Series:
    """One of samples.arrow, and how it is shown."""

    line: str
    host: str
    source: str
    metric: str
    counter: bool = False
    """Shown as its growth a second."""
    factor: float = 1.0

    @property
    def key(self) -> tuple[str, str, str]:
        return self.host, self.source, self.metric


class Thinned:
    """The extremes of lines within stretches of equal length from ``start_ns`` to ``end_ns``."""

    def __init__(self, start_ns: int, end_ns: int, buckets: int = BUCKETS) -> None:
        self._start_ns, self._end_ns = start_ns, max(end_ns, start_ns + 1)
        self._width_ns = max(1, -(-(self._end_ns - start_ns) // buckets))
        self._kept = pl.DataFrame()

    def add(self, rows: pl.DataFrame) -> None:
        """``rows``: columns line, time_ns, value, in any order; null values are left out."""
        inside = rows.filter(pl.col("time_ns").is_between(self._start_ns, self._end_ns)).drop_nulls("value")
        if not inside.is_empty():
            new = inside.select("line", "time_ns", pl.col("value").cast(pl.Float64))
            self._kept = self._extremes(_after(self._kept, new))

    def rows(self) -> pl.DataFrame:
        """Columns line, time_ns, value, by line and time."""
        return self._kept if self._kept.is_empty() else self._kept.sort("line", "time_ns")

    def _extremes(self, rows: pl.DataFrame) -> pl.DataFrame:
        stretch = ((pl.col("time_ns") - self._start_ns) // self._width_ns).alias("stretch")
        value, time = pl.col("value"), pl.col("time_ns")
        found = rows.group_by("line", stretch).agg(
            low_ns=time.get(value.arg_min()), low=value.min(), high_ns=time.get(value.arg_max()), high=value.max()
        )
        ends = [found.select("line", time_ns=f"{end}_ns", value=end) for end in ("low", "high")]
        return pl.concat(ends).unique()


class Samples:
    """Series of samples.arrow, thinned as its pieces come, in the order of the file."""

    def __init__(self, series: Mapping[str, list[Series]], start_ns: int, end_ns: int, buckets: int = BUCKETS) -> None:
        """``series``: by panel."""
        self._series = [(panel, each) for panel, of in series.items() for each in of]
        facts = [(*each.key, n, each.counter, each.factor) for n, (_, each) in enumerate(self._series)]
        numbers = {"line": pl.UInt32, "counter": pl.Boolean, "factor": pl.Float64}
        self._wanted = pl.DataFrame(facts, schema={**dict.fromkeys(KEY, pl.String), **numbers}, orient="row")
        self._last = pl.DataFrame()
        self._thinned = Thinned(start_ns, end_ns, buckets)

    def add(self, rows: pl.DataFrame) -> None:
        """``rows``: columns host, source, metric, time_ns, value."""
        # Names are compared among the few that there are, not in each of millions of rows.
        present = rows.select(KEY).unique()
        texts = present.with_columns(pl.col(name).cast(pl.String).alias(f"{name} text") for name in KEY)
        known = texts.join(self._wanted, left_on=[f"{name} text" for name in KEY], right_on=KEY)
        if known.is_empty():
            return
        named = known.select(*KEY, "line", "counter", "factor")
        found = rows.join(named, on=KEY).select(
            "line", "time_ns", pl.col("value").cast(pl.Float64) * pl.col("factor"), "counter"
        )
        self._thinned.add(found.filter(~pl.col("counter")))
        counters = found.filter("counter").sort("line", "time_ns", maintain_order=True)
        self._thinned.add(_growth(_after(self._last, counters)))
        lasts = _after(self._last, counters).group_by("line", maintain_order=True).last()
        self._last = lasts.select(counters.columns)

    def panels(self) -> dict[str, pl.DataFrame]:
        """Panel -> columns line, time_ns, value; those with rows only."""
        found: dict[str, list[pl.DataFrame]] = {}
        thinned = self._thinned.rows()
        for (number,), rows in () if thinned.is_empty() else thinned.group_by("line", maintain_order=True):
            panel, each = self._series[int(str(number))]
            found.setdefault(panel, []).append(rows.with_columns(line=pl.lit(each.line)))
        return {panel: pl.concat(found[panel]) for panel in dict.fromkeys(p for p, _ in self._series) if panel in found}


def _growth(counters: pl.DataFrame) -> pl.DataFrame:
    """The growth a second of each line from one row to the next; the first row of a line has no growth."""
    rows = counters.sort("line", "time_ns", maintain_order=True)
    same = pl.col("line") == pl.col("line").shift(1)
    seconds = pl.col("time_ns").diff() / 1e9
    grown = rows.with_columns(value=pl.when(same).then(pl.col("value").diff() / seconds))
    return grown.filter(pl.col("value").is_finite())


def _after(before: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """``rows`` after the rows of the piece before, if there are any."""
    return rows if before.is_empty() else pl.concat([before, rows])
