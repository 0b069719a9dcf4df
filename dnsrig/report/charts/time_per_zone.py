"""Does the time grow as the number of zones does? Time a zone against zones: a constant is the ideal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import LOWER_BOUNDS, variant_table
from dnsrig.report.charts import Drawing, _look, _split

TITLE = "Time per zone against number of zones"
ORDER = 20
METRICS = ("time_per_zone_ms", "transfer_time_s")

METRIC = "time_per_zone_ms"


def applies(run: Run) -> bool:
    several = len(_split.zone_counts(run)) > 1
    return several and any(row.spread is not None for row in variant_table(run, METRIC))


def caption(run: Run) -> str:
    return (
        "If each zone cost the same, a line would be level. Falling: a fixed cost is spread over more zones. Rising, or a"
        " band that widens: something fills up, and a size that was not measured cannot be told from its neighbours."
        " Line: median; band: smallest to largest; marks: each repeat. An open triangle with ≥ hit its limit:"
        " the line is only a lower bound there."
    )


def draw(run: Run) -> list[Drawing]:
    rows = pl.DataFrame(list(_rows(run)), infer_schema_length=None)
    marks = pl.DataFrame(list(_marks(run)), infer_schema_length=None)
    title, scale = _look.measure(marks["value"], "time per zone, ms")
    sizes = _split.zone_counts(run)
    x = alt.X(
        "zones:Q",
        title="zones (log scale)",
        scale=alt.Scale(type="log", domain=[sizes[0] * 0.9, sizes[-1] * 1.1], nice=False),
        axis=alt.Axis(values=sizes, format=",", grid=False, labelOverlap="greedy"),
    )
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6, format=",~r"))
    panel = alt.layer(*_layers(run, rows, marks, x, y)).properties(width=_look.WIDTH, height=280)
    return [Drawing("all", _look.stack([panel]))]


def _layers(run: Run, rows: pl.DataFrame, marks: pl.DataFrame, x: alt.X, y: alt.Y) -> list[Any]:
    names = _split.colour_names(run)
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=alt.Legend() if len(names) > 1 else None)
    shape = alt.Shape("colour:N", scale=_look.shapes(names), legend=alt.Legend() if len(names) > 1 else None)
    others = list(dict.fromkeys(rows["other"]))
    dash = alt.StrokeDash("other:N", scale=_look.dashes(others), legend=alt.Legend() if len(others) > 1 else None)
    detail = alt.Detail("other:N")
    lines, done = alt.Chart(rows), marks.filter(~pl.col("limit"))
    limit = alt.Chart(marks.filter(pl.col("limit")))
    layers: list[Any] = [
        lines.mark_area(opacity=0.16).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, detail),
        lines.mark_line(strokeWidth=2).encode(x, y, colour, dash),
        alt.Chart(done).mark_point(filled=True, size=34, opacity=0.85).encode(x, y, colour, shape),
    ]
    if len(done) < len(marks):
        layers.append(limit.mark_point(shape="triangle-up", size=64, strokeWidth=1.6).encode(x, y, colour))
        layers.append(limit.mark_text(text="≥", dx=-11, color=_look.INK, fontSize=12).encode(x, y))
    return layers


def _rows(run: Run) -> Iterable[dict[str, object]]:
    for row in variant_table(run, METRIC):
        if row.spread is not None:
            yield {
                "zones": run.manifest.specs[row.variant.id].dataset.zones,
                "colour": _split.colour_of(run, row.variant),
                "other": _split.label(row.variant, _split.other_axes(run)),
                "value": row.spread.median,
                "low": row.spread.low,
                "high": row.spread.high,
            }


def _marks(run: Run) -> Iterable[dict[str, object]]:
    for trial in run.trials:
        spec, outcome = trial.record.spec, trial.record.outcome
        value = LOWER_BOUNDS[METRIC](trial) if outcome == "limit" else trial.record.metrics.get(METRIC)
        if value is not None and outcome in ("done", "limit"):
            yield {
                "zones": spec.dataset.zones,
                "colour": _split.colour_of(run, spec.variant),
                "value": value,
                "limit": outcome == "limit",
            }
