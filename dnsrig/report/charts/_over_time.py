"""The generic chart of values over time: panels one below the other on one axis of time, in each some lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.report.charts import Chart, Drawing, _look, _split
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

MOST_POINTS = 300
"""Most points of one line."""
PANEL_PX = 66


@dataclass(frozen=True)
class Panel:
    """One value of a few things over time."""

    title: str
    rows: pl.DataFrame
    """Columns line (what it is the value of; empty of a single one that needs no name), time_s, value."""
    logarithmic: bool = False
    """For lines too far apart for an axis from zero; what is zero is left out."""


@dataclass(frozen=True)
class Picture:
    name: str
    panels: Sequence[Panel]
    lines: Sequence[str]
    """What the panels have values of, in the order of colours."""
    since: str
    """What the seconds count from."""
    title: str = ""
    group: str = ""
    open: bool = False
    until_s: float = 0.0
    """To where the axis of time reaches at least: pictures that are compared have the same."""

    def drawing(self) -> Drawing:
        return Drawing(self.name, _look.stack(self._drawn(), 8), self.title, self.group, self.open)

    def _drawn(self) -> list[alt.Chart]:
        """Only the lowest says what the time is."""
        low, high = _look.extent(pl.concat([panel.rows["time_s"].cast(pl.Float64) for panel in self.panels]))
        extent, last = [min(0.0, low), max(high, self.until_s)], self.panels[-1]
        return [
            panel(each, self.lines, extent, f"seconds since {self.since}" if each is last else None)
            for each in self.panels
        ]


@dataclass(frozen=True)
class TimeSeries(Chart):
    says: str
    """The caption."""
    pictures: Callable[[Run, Sequence[Finding]], Iterable[Picture]]

    def applies(self, run: Run) -> bool:
        return any(True for _ in self.pictures(run, []))

    def caption(self, run: Run) -> str:
        return self.says

    def draw(self, run: Run, findings: Sequence[Finding]) -> list[Drawing]:
        return [picture.drawing() for picture in self.pictures(run, findings)]


def thinned(rows: pl.DataFrame, line: str) -> pl.DataFrame:
    """``rows`` sorted by time, of each line every n-th: at most ``MOST_POINTS`` of the longest."""
    longest = rows.group_by(line).len()["len"].max()
    step = max(1, -(-int(longest) // MOST_POINTS)) if isinstance(longest, int) else 1
    return rows.filter(pl.int_range(pl.len()).over(line) % step == 0)


def per_s(counter: str, line: str) -> pl.Expr:
    """The growth of a counter a second, from one row of a line to its next."""
    seconds = pl.col("time_ns").diff().over(line) / 1e9
    return pl.col(counter).cast(pl.Int64).diff().over(line) / seconds


def panel(of: Panel, lines: Sequence[str], extent: Sequence[float], since: str | None) -> alt.Chart:
    """One panel, between the ends ``extent`` of the axis of time, which ``since`` names; None: it has no labels."""
    rows = of.rows.drop_nulls("value")
    if of.logarithmic:
        rows = rows.filter(pl.col("value") > 0)
    x = alt.X(
        "time_s:Q",
        title=since,
        scale=alt.Scale(domain=list(extent), nice=False),
        axis=alt.Axis(labels=since is not None, ticks=since is not None, tickCount=10),
    )
    scale = _log(rows["value"]) if of.logarithmic else _look.from_zero(rows["value"])
    y = alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(tickCount=3, format=",~r", minExtent=42))
    chart = alt.Chart(rows)
    if set(rows["line"]) == {""}:
        drawn = chart.mark_line(strokeWidth=1.8, interpolate="step-after", color=_look.INK).encode(x, y)
    else:
        legend = alt.Legend(columns=4) if list(lines) != [_split.ONLY] else None
        drawn = chart.mark_line(strokeWidth=1.4, clip=True).encode(
            x,
            y,
            alt.Color("line:N", scale=_look.colours(lines), legend=legend),
            alt.StrokeDash("line:N", scale=_look.dashes(lines), legend=legend),
        )
    finished: alt.Chart = drawn.properties(width=_look.WIDTH, height=PANEL_PX, title=_look.heading(of.title))
    return finished


def _log(values: pl.Series) -> alt.Scale:
    low, high = _look.extent(values)
    if low <= 0:
        return _look.from_zero(values)
    return alt.Scale(type="log", domain=[low / _look.ROOM, high * _look.ROOM], nice=False)
