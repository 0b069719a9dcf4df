"""Several values of a few things over time, a panel each, one below the other on one axis of time: what charts of TCP share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import altair as alt
import polars as pl

from dnsrig.report.charts import _look

MOST_POINTS = 300
"""Of one line."""
PANEL_PX = 66


def panels(
    rows: pl.DataFrame,
    line: str,
    titles: Mapping[str, str],
    *,
    since: str,
    always: Collection[str] = (),
    names: Sequence[str] = (),
    logarithmic: Collection[str] = (),
) -> list[alt.Chart]:
    """A panel for each column of ``titles`` that is not all zero, or is in ``always``; only the lowest says what the time is.

    ``rows``: the column ``line``, which says whose values they are, ``time_s``, and the columns of ``titles``. ``since``: what the time
    counts from. ``names``: the lines in the order of their colours, by default as they come. ``logarithmic``: columns of which lines lie
    too far apart for an axis from zero; what is zero is left out there.
    """
    shown = [name for name in titles if name in always or _look.extent(rows[name])[1] > 0]
    low, high = _look.extent(rows["time_s"])
    extent = [min(0.0, low), high]
    known = list(names) or list(dict.fromkeys(rows[line]))
    charts = []
    for name in shown:
        values = rows.select(line, "time_s", value=name).drop_nulls()
        if name in logarithmic:
            values = values.filter(pl.col("value") > 0)
        scale = _log(values["value"]) if name in logarithmic else _look.from_zero(values["value"])
        charts.append(_panel(values, line, titles[name], scale, extent, known, since if name == shown[-1] else None))
    return charts


def thinned(rows: pl.DataFrame, line: str) -> pl.DataFrame:
    """``rows`` sorted by time, of each line every n-th: at most ``MOST_POINTS`` of the longest."""
    longest = rows.group_by(line).len()["len"].max()
    step = max(1, -(-int(longest) // MOST_POINTS)) if isinstance(longest, int) else 1
    return rows.filter(pl.int_range(pl.len()).over(line) % step == 0)


def per_s(counter: str, line: str) -> pl.Expr:
    """The growth of a counter a second, from one row of a line to its next."""
    seconds = pl.col("time_ns").diff().over(line) / 1e9
    return pl.col(counter).cast(pl.Int64).diff().over(line) / seconds


def _log(values: pl.Series) -> alt.Scale:
    low, high = _look.extent(values)
    if low <= 0:
        return _look.from_zero(values)
    return alt.Scale(type="log", domain=[low / _look.ROOM, high * _look.ROOM], nice=False)


def _panel(
    rows: pl.DataFrame,
    line: str,
    title: str,
    scale: alt.Scale,
    extent: list[float],
    names: list[str],
    since: str | None,
) -> alt.Chart:
    legend = alt.Legend(columns=4) if len(names) > 1 else None
    x = alt.X(
        "time_s:Q",
        title=since,
        scale=alt.Scale(domain=extent, nice=False),
        axis=alt.Axis(labels=since is not None, ticks=since is not None, tickCount=10),
    )
    y = alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(tickCount=3, format=",~r", minExtent=42))
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(strokeWidth=1.4, clip=True)
        .encode(
            x,
            y,
            alt.Color(f"{line}:N", scale=_look.colours(names), legend=legend),
            alt.StrokeDash(f"{line}:N", scale=_look.dashes(names), legend=legend),
        )
        .properties(width=_look.WIDTH, height=PANEL_PX, title=_look.heading(title))
    )
    return chart
