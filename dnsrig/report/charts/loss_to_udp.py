"""The capacity that each transport costs, beside UDP: the loss, as operators of resolvers read it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from dnsrig.comparison.loss import METRIC, losses
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.runs.run import Run

TITLE = "How much of its capacity over UDP does each server lose over other transports?"
ORDER = 7
METRICS = (METRIC,)
ROW_PX = 26
AXIS_PX = 62
"""Height of the axis."""


def applies(run: Run) -> bool:
    return any(True for _ in losses(run))


def caption(run: Run) -> str:
    return (
        "The bar is the loss: how much lower the highest rate that held is than the highest rate over UDP at the same server, by"
        " the medians. The line through its end is the interval of that figure; without a line there are too few repeats for one,"
        " and a line to the edge may have no end."
        " “≥” and “≤” show that a search ended at its highest rate, so that a capacity is only known to be more."
        " A bar to the left of zero is a gain. A bar without fill shows a difference that chance can explain."
    )


def draw(run: Run) -> list[Drawing]:
    axes = _split.row_axes(run)
    rows: list[dict[str, Any]] = [
        {
            "row": _split.label(loss.variant, axes),
            "percent": loss.percent,
            "low": loss.low,
            "high": loss.high,
            "known": loss.change != "undecided",
            "text": f"{loss.text} %",
        }
        for loss in losses(run)
    ]
    most = (_split.SCREEN_PX - 2 * _split.FRAME_PX) // ROW_PX
    parts = [rows[start : start + most] for start in range(0, len(rows), most)]
    lowest, highest = _range(rows)
    for row in rows:
        row["low"], row["high"] = max(row["low"], lowest), min(row["high"], highest)
    scale = alt.Scale(domain=[lowest, highest * _look.ROOM], nice=True)
    x = alt.X("percent:Q", title="loss to UDP, % of the capacity over UDP", scale=scale)
    heights = [ROW_PX * len(part) + AXIS_PX for part in parts]
    return _split.screens([_panel(pl.DataFrame(part), x) for part in parts], heights)


def _range(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The lowest and the highest figure to draw; an interval may have no end."""
    figures = [0.0, *(row[end] for row in rows for end in ("low", "percent", "high"))]
    finite = [figure for figure in figures if math.isfinite(figure)]
    return min(finite), max(finite)


def _panel(rows: pl.DataFrame, x: alt.X) -> alt.LayerChart | alt.FacetChart:
    names = rows["row"].to_list()
    y = alt.Y("row:N", sort=names, title=None, scale=alt.Scale(domain=names), axis=alt.Axis(grid=False))
    base = alt.Chart(rows)
    bars = base.mark_bar(height=12, color=_look.COLOURS[0], stroke=_look.COLOURS[0])
    fill = alt.condition(alt.datum.known, alt.value(0.6), alt.value(0.0))
    spans = base.transform_filter(alt.datum.low < alt.datum.high).mark_rule(strokeWidth=1.6, color=_look.INK)
    words = base.mark_text(align="left", dx=6, dy=-9, fontSize=10, color=_look.INK)
    layers = [
        bars.encode(x, y, fillOpacity=fill),
        spans.encode(alt.X("low:Q"), alt.X2("high:Q"), y),
        words.encode(x, y, alt.Text("text:N")),
    ]
    return alt.layer(*layers).properties(width=_look.WIDTH - 60, height=alt.Step(ROW_PX))
