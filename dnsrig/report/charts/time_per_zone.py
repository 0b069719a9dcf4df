"""Does the time grow as the number of zones does? Time a zone against zones: a constant is the ideal."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import lower_bound, variant_table
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
        "If each zone cost the same, a line would be level. Falling: a fixed cost is spread over more zones. Rising,"
        " or a band that widens: something fills up, and a size that was not measured cannot be told from its"
        " neighbours. Line: median; band: smallest to largest; marks: each repeat. An open triangle with ≥ hit its"
        " limit: the line is only a lower bound there."
    )


def draw(run: Run) -> list[Drawing]:
    rows = pl.DataFrame(list(_rows(run)), infer_schema_length=None)
    marks = pl.DataFrame(list(_marks(run)), infer_schema_length=None)
    others = list(dict.fromkeys(rows["other"]))
    panels = [_panel(run, rows, marks, other) for other in others]
    pairs = [alt.hconcat(*panels[i : i + 2], spacing=24) for i in range(0, len(panels), 2)]
    return [Drawing("all", _look.stack(pairs))]


def _panel(run: Run, rows: pl.DataFrame, marks: pl.DataFrame, other: str) -> alt.LayerChart | alt.FacetChart:
    """The variants that are alike but for zones and colour; all panels have the axes of the whole."""
    sizes = _split.zone_counts(run)
    title, scale = _look.measure(marks["value"], "time per zone, ms")
    only = other == _split.ONLY
    x = alt.X(
        "zones:Q",
        title="zones (log scale)",
        scale=alt.Scale(type="log", domain=[sizes[0] * 0.9, sizes[-1] * 1.1], nice=False),
        axis=alt.Axis(values=sizes, format=",", grid=False, labelOverlap="greedy"),
    )
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6, format=",~r"))
    layers = _layers(run, rows.filter(pl.col("other") == other), marks.filter(pl.col("other") == other), x, y)
    return alt.layer(*layers).properties(
        width=_look.WIDTH if only else (_look.WIDTH - 60) // 2,
        height=280 if only else 190,
        title="" if only else _look.heading(other),
    )


def _layers(run: Run, rows: pl.DataFrame, marks: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    names = _split.colour_names(run)
    legend = alt.Legend() if len(names) > 1 else None
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=legend)
    shape = alt.Shape("colour:N", scale=_look.shapes(names), legend=legend)
    lines, points = alt.Chart(rows), alt.Chart(marks)
    done, limit = points.transform_filter(~alt.datum.limit), points.transform_filter(alt.datum.limit)
    return [
        lines.mark_area(opacity=0.16).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
        lines.mark_line(strokeWidth=2).encode(x, y, colour),
        done.mark_point(filled=True, size=34, opacity=0.85).encode(x, y, colour, shape),
        limit.mark_point(shape="triangle-up", size=64, opacity=1, strokeWidth=1.6).encode(x, y, colour),
        limit.mark_text(text="≥", dx=-11, color=_look.INK, fontSize=12).encode(x, y),
    ]


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
        value = lower_bound(trial, METRIC) if outcome == "timeout" else trial.value(METRIC)
        if value is not None and outcome in ("done", "timeout"):
            yield {
                "zones": spec.dataset.zones,
                "colour": _split.colour_of(run, spec.variant),
                "other": _split.label(spec.variant, _split.other_axes(run)),
                "value": value,
                "limit": outcome == "timeout",
            }
