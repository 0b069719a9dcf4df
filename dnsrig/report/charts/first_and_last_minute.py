"""How slow the slowest queries are in the first minute of a resolver, and in the last: as S5 draws it.

Both axes are logarithmic. A line is the mean of all repeats, a band goes from the smallest to the largest. Colours are
the levels of DNSSEC where those are an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import get_args

import altair as alt
import polars as pl

from dnsrig.metrics.latency import timeout_ms
from dnsrig.report import phrases
from dnsrig.report.charts import Drawing, _latency, _look, _split
from dnsrig.report.charts.slowest_percentile import grid
from dnsrig.report.names import varying_axes
from dnsrig.rundir import Variant
from dnsrig.runs import minutes
from dnsrig.runs.minutes import Which
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.text import digits

TITLE = "Are answers slower at the beginning than at the end?"
ORDER = 6
METRICS = ("first_minute_p99_ms", "last_minute_p99_ms")
LEVEL = "level"
SIZE_PX = ((_look.WIDTH - 60) // 2, 190)
"""Width and height of a panel."""


@dataclass(frozen=True)
class Curve:
    """A variant in one of both minutes."""

    variant: Variant
    which: Which
    rows: pl.DataFrame
    """Columns percent, mean, low, high: milliseconds over the repeats."""


def applies(run: Run) -> bool:
    return any(minutes.latencies(trial, "first") for trial in run.trials if trial.record.outcome == "done")


def caption(run: Run) -> str:
    return (
        "At 1 %, read: the slowest 1 % of the queries took longer than this. The chart shows the first and the last minute of the replay,"
        " or its two halves if it is shorter than two minutes; the headings have the true length. Line: mean of the repeats. Band: smallest"
        " to largest. Times count from the moment when a query was due. A query without an answer counts as the client's timeout. Look for"
        " lines that differ at the beginning, when the cache is empty, and are the same at the end."
    )


def draw(run: Run) -> list[Drawing]:
    curves = [curve for variant in run.manifest.variants for curve in _curves(run, variant)]
    axis = _colour_axis(run)
    others = [name for name in varying_axes(run) if name != axis]
    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(_split.label(curve.variant, others), []).append(curve)
    rows = [
        alt.hconcat(*(_panel(run, axis, label, which, group, curves) for which in get_args(Which)), spacing=24)
        for label, group in groups.items()
    ]
    return _split.screens(rows, _latency.HALF_PX)


def _colour_axis(run: Run) -> str | None:
    return LEVEL if LEVEL in varying_axes(run) else _split.colour_axis(run)


def _curves(run: Run, variant: Variant) -> list[Curve]:
    trials = run.done(variant.id)
    found = ((which, _rows(trials, which)) for which in get_args(Which))
    return [Curve(variant, which, rows) for which, rows in found if not rows.is_empty()]


def _stretch(trials: Sequence[Trial], which: Which) -> str:
    """``first minute``, or ``first 10 s`` if the halves of a short replay are drawn instead."""
    found = [stretch for trial in trials if (stretch := minutes.stretch(trial, which))]
    length_ns = min(end_ns - begun_ns for begun_ns, end_ns in found)
    return f"{which} minute" if length_ns == minutes.MINUTE_NS else f"{which} {digits(length_ns / 1e9)} s"


def _rows(trials: Sequence[Trial], which: Which) -> pl.DataFrame:
    known = [(trial, found) for trial in trials if (found := minutes.latencies(trial, which))]
    if not known:
        return pl.DataFrame()
    percents = grid(min(found.total for _, found in known))
    lines = [
        [_latency.shown_ms(ns, timeout_ms(trial)) for ns in found.percentiles([100 - percent for percent in percents])]
        for trial, found in known
    ]
    points = list(zip(*lines))
    return pl.DataFrame(
        {
            "percent": percents,
            "mean": [fmean(point) for point in points],
            "low": [min(point) for point in points],
            "high": [max(point) for point in points],
        }
    )


def _panel(
    run: Run, axis: str | None, label: str, which: Which, group: Sequence[Curve], everything: Sequence[Curve]
) -> alt.LayerChart | alt.FacetChart:
    """All panels have the axes of the whole."""
    names = [phrases.of(axis, value) for value in run.manifest.axes[axis]] if axis else [_split.ONLY]
    frames = [
        curve.rows.with_columns(colour=pl.lit(_split.label(curve.variant, [axis] if axis else [])))
        for curve in group
        if curve.which == which
    ]
    values = [value for curve in everything for column in ("low", "high") for value in curve.rows[column]]
    last = min(float(curve.rows["percent"].to_list()[-1]) for curve in everything)
    ticks = [tick for tick in (100, 10, 1, 0.1, 0.01, 0.001) if tick >= last]
    x = alt.X(
        "percent:Q",
        title="slowest share of the queries (log scale)",
        scale=alt.Scale(type="log", domain=[100, last], nice=False),
        axis=alt.Axis(values=ticks, labelExpr="format(datum.value, '~r') + ' %'"),
    )
    title, scale, y_axis = _latency.milliseconds(values, "latency, ms")
    drawn = {_split.label(curve.variant, [axis] if axis else []) for curve in everything}
    shown = [name for name in names if name in drawn]
    at_ends = _look.named_at_ends(shown)
    legend = None
    if len(names) > 1 and not at_ends:
        legend = alt.Legend(symbolType="stroke", symbolSize=300, values=shown)
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=legend)
    dash = alt.StrokeDash("colour:N", scale=_look.dashes(names), legend=legend)
    base = alt.Chart(pl.concat(frames) if frames else pl.DataFrame(schema={"percent": pl.Float64, "colour": pl.String}))
    band = base.mark_area(opacity=0.18).encode(
        x, alt.Y("low:Q", title=title, scale=scale, axis=y_axis), alt.Y2("high:Q"), colour
    )
    y = alt.Y("mean:Q", title=title, scale=scale, axis=y_axis)
    line = base.mark_line(strokeWidth=2).encode(x, y, colour, dash)
    ends = {str(frame["colour"][0]): float(frame["mean"][-1]) for frame in frames} if at_ends else {}
    words = _look.at_ends(ends, y, *SIZE_PX, _look.colours(names))
    stretch = _stretch([trial for curve in group for trial in run.done(curve.variant.id)], which)
    heading = stretch if label == _split.ONLY else [label, stretch]
    return alt.layer(band, line, *words).properties(width=SIZE_PX[0], height=SIZE_PX[1], title=_look.heading(heading))
