"""Latency over time as a map: how many queries took how long, and when."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from dnsrig.analysis.latency import Interval
from dnsrig.analysis.metrics.latency import timeout_ms
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _latency, _look

TITLE = "Latency over time"
ORDER = 6
METRICS = ("p99_ms", "p99_9_ms", "max_ms")

ROWS = 36
"""At most, from the smallest latency to the largest."""
STEPS_A_DECADE = (10, 8, 6, 5, 4, 3)
"""Rows a factor of ten, the finest that fits."""
HEIGHT_PX = 200
FAINTEST = 0.16
"""Opacity of a cell with one query; it is the light or dark page that shows through."""
MOST_SHADES = 6


def applies(run: Run) -> bool:
    return any(len(intervals(trial)) > 1 for trial in _latency.over_time(run))


def caption(run: Run) -> str:
    return (
        "Each column is a stretch of time, each cell a range of latency: the darker, the more queries that were due then took so long;"
        " a step of shade is a factor of ten. Look for columns that reach up (a stall), rows that split in two (one of"
        " several threads is late), and a slow beginning. A query belongs to the time at which it was due."
        + f" {_latency.which(run)}"
    )


def draw(run: Run) -> list[Drawing]:
    trials = [trial for trial in _latency.over_time(run) if len(intervals(trial)) > 1]
    return [
        _latency.drawing(run, trial, _look.stack([_panel(run, trial)]), in_sight=number == 0)
        for number, trial in enumerate(trials)
    ]


def intervals(trial: Trial) -> list[Interval]:
    assert trial.latency is not None
    return trial.latency.intervals("due")


def cells(found: Sequence[Interval], edges_ms: Sequence[float]) -> Iterable[dict[str, float]]:
    """One a stretch and row that is not empty: its edges, and the digits of how many queries it holds but for one."""
    for interval in found:
        counted: Counter[int] = Counter()
        for value, count in zip(interval.histogram.values_ns, interval.histogram.counts):
            counted[_row(value / 1e6, edges_ms)] += count
        for row, count in counted.items():
            yield {
                "start_s": interval.offset_s,
                "end_s": interval.offset_s + interval.duration_s,
                "low": edges_ms[row],
                "high": edges_ms[row + 1],
                "shade": min(MOST_SHADES - 1, len(str(count)) - 1),
            }


def edges(low_ms: float, high_ms: float) -> list[float]:
    """Of the rows: as many a decade as give no more than ``ROWS``."""
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


def _panel(run: Run, trial: Trial) -> alt.LayerChart:
    found = _latency.stretches(intervals(trial))
    most = timeout_ms(trial)
    largest = max(interval.histogram.max_ns or 1 for interval in found) / 1e6
    smallest = min(interval.histogram.min_ns or 1 for interval in found if interval.histogram.total) / 1e6
    edges_ms = edges(max(1e-6, smallest), largest)
    rows = pl.DataFrame(list(cells(found, edges_ms)))
    shades = range(int(_look.extent(rows["shade"])[1]) + 1)
    rows = rows.with_columns(queries=pl.col("shade").replace_strict({s: shade_name(s) for s in shades}))
    title, _, axis = _latency.milliseconds([edges_ms[0], edges_ms[-1]], "latency, ms")
    scale = alt.Scale(type="log", domain=[edges_ms[0], edges_ms[-1]], nice=False)
    end_s = found[-1].offset_s + found[-1].duration_s
    x = alt.X(
        "start_s:Q",
        title="seconds since the first query was due",
        scale=alt.Scale(domain=[0, end_s], nice=False),
        axis=alt.Axis(tickCount=10, grid=False),
    )
    y = alt.Y("low:Q", title=title, scale=scale, axis=axis)
    colour = _latency.colour(run, trial.record.spec.variant)
    scale_of_shades = alt.Scale(
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
    shade = alt.Opacity("queries:N", scale=scale_of_shades, legend=legend)
    map_ = alt.Chart(rows).mark_rect(color=colour).encode(x, alt.X2("end_s:Q"), y, alt.Y2("high:Q"), shade)
    layers = [map_, *_latency.timeout_line(most, largest, y)]
    return alt.layer(*layers).properties(width=_look.WIDTH, height=HEIGHT_PX)
