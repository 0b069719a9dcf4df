"""Latency over time as a map: how many queries took how long, and when."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.metrics.latency import timeout_ms
from dnsrig.report.charts import Drawing, _latency, _look
from dnsrig.runs.latency import Interval
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "When were queries slow, and how many of them?"
ORDER = 6
METRICS = ("p99_ms", "p99_9_ms", "max_ms")

ROWS = 36
"""At most, from the smallest latency to the largest."""
STEPS_A_DECADE = (10, 8, 6, 5, 4, 3)
"""Rows a factor of ten, the finest that fits."""
HEIGHT_PX = 200
OF_TWO_PX = 140
"""Each of two maps."""
FAINTEST = 0.16
"""Opacity of a cell with one query; it is the light or dark page that shows through."""
MOST_SHADES = 6


def applies(run: Run) -> bool:
    return bool(_latency.over_time(run))


def caption(run: Run) -> str:
    return (
        "Each column is a stretch of time, each cell a range of latency. The stronger its colour, the more of the queries due then had this latency;"
        " one step of shade is a factor of ten. Look for columns that reach up (a stall), for rows that split in two (one of"
        " several threads is late), and for a slow beginning. A query belongs to the time when it was due."
        + _latency.between(run, "each end has a map")
        + f" {_latency.which(run)}"
    )


def draw(run: Run) -> list[Drawing]:
    return [
        _latency.drawing(run, trial, _look.stack(_panels(run, trial)), in_sight=number == 0)
        for number, trial in enumerate(_latency.over_time(run))
    ]


@dataclass
class Cell:
    """A range of latency over a stretch of time, and the digits of how many queries it holds, but for one."""

    start_s: float
    end_s: float
    low: float
    high: float
    shade: int


def cells(found: Sequence[Interval], edges_ms: Sequence[float]) -> list[Cell]:
    """Cells that are not empty; neighbours in time with the same shade are one, which keeps the drawing small."""
    drawn: list[Cell] = []
    open_: dict[int, Cell] = {}
    for interval in found:
        counted: Counter[int] = Counter()
        for value, count in zip(interval.histogram.values_ns, interval.histogram.counts):
            counted[_row(_latency.shown_ms(value), edges_ms)] += count
        end_s = interval.offset_s + interval.duration_s
        before, open_ = open_, {}
        for row, count in counted.items():
            shade, left = min(MOST_SHADES, len(str(count))) - 1, before.get(row)
            if left is not None and left.shade == shade:
                left.end_s = end_s
            else:
                left = Cell(interval.offset_s, end_s, edges_ms[row], edges_ms[row + 1], shade)
                drawn.append(left)
            open_[row] = left
    return drawn


def edges(low_ms: float, high_ms: float) -> list[float]:
    """Edges of the rows: as many a decade as give no more than ``ROWS``."""
    decades = max(1e-9, math.log10(high_ms / low_ms))
    steps = next((steps for steps in STEPS_A_DECADE if decades * steps <= ROWS - 2), STEPS_A_DECADE[-1])
    first, last = math.floor(math.log10(low_ms) * steps), math.floor(math.log10(high_ms) * steps) + 1
    return [10 ** (number / steps) for number in range(first, last + 1)]


def _row(value_ms: float, edges_ms: Sequence[float]) -> int:
    share = math.log(value_ms / edges_ms[0]) / math.log(edges_ms[1] / edges_ms[0])
    return min(max(0, int(share)), len(edges_ms) - 2)


def shade_name(shade: int) -> str:
    """``100 to 999``; the last has no end."""
    return f"{10**shade:,} or more" if shade == MOST_SHADES - 1 else f"{10**shade:,} to {10 ** (shade + 1) - 1:,}"


def _panels(run: Run, trial: Trial) -> list[alt.LayerChart | alt.FacetChart]:
    """A map of the upper ends, and one of the lower ends where these are apart; both have the axes and shades of the
    whole."""
    upper, lower = _latency.intervals(trial)
    values = [v for i in [*upper, *lower] for v in (i.histogram.min_ns, i.histogram.max_ns) if v is not None]
    largest_ms = _latency.shown_ms(max(values))
    edges_ms = edges(_latency.shown_ms(min(values)), largest_ms)
    maps = [pl.DataFrame(cells(found, edges_ms)) for found in (upper, lower) if found]
    shades = range(int(_look.extent(pl.concat([rows["shade"] for rows in maps]))[1]) + 1)
    x = alt.X(
        "start_s:Q",
        title="seconds since the first query was due",
        scale=alt.Scale(domain=[0, upper[-1].offset_s + upper[-1].duration_s], nice=False),
        axis=alt.Axis(tickCount=10, grid=False),
    )
    title, _, axis = _latency.milliseconds([edges_ms[0], edges_ms[-1]], "latency, ms")
    scale = alt.Scale(type="log", domain=[edges_ms[0], edges_ms[-1]], nice=False)
    y = alt.Y("low:Q", title=title, scale=scale, axis=axis)
    timeout = _latency.timeout_line(timeout_ms(trial), largest_ms, y, words_above=False)
    colour = _latency.colour(run, trial.record.spec.variant)
    headings = ["From the due time", "What the server took at least"] if lower else [""]
    return [
        alt.layer(_map(rows, shades, colour, x, y), *timeout).properties(
            width=_look.WIDTH, height=OF_TWO_PX if lower else HEIGHT_PX, title=_look.heading(heading)
        )
        for rows, heading in zip(maps, headings)
    ]


def _map(rows: pl.DataFrame, shades: Sequence[int], colour: str, x: alt.X, y: alt.Y) -> alt.Chart:
    rows = rows.with_columns(queries=pl.col("shade").replace_strict({s: shade_name(s) for s in shades}))
    marks = alt.Chart(rows).mark_rect(color=colour)
    drawn: alt.Chart = marks.encode(x, alt.X2("end_s:Q"), y, alt.Y2("high:Q"), _shade(shades, colour))
    return drawn


def _shade(shades: Sequence[int], colour: str) -> alt.Opacity:
    """From ``FAINTEST`` to full, in even steps."""
    scale = alt.Scale(
        type="ordinal",
        domain=[shade_name(shade) for shade in shades],
        range=[FAINTEST + (1 - FAINTEST) * shade / max(1, len(shades) - 1) for shade in shades],
    )
    legend = alt.Legend(
        title="queries in a cell",
        titleFontSize=11,
        titleFontWeight="normal",
        titleColor=_look.MUTED,
        columns=len(shades),
        symbolType="square",
        symbolSize=140,
        symbolFillColor=colour,
        symbolStrokeWidth=0,
        symbolOpacity=alt.ExprRef("scale('opacity', datum.value)"),
    )
    return alt.Opacity("queries:N", scale=scale, legend=legend)
