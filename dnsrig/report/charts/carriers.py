"""How long each carrier took to bring zones to the far site, by congestion control, the published times beside it."""

from __future__ import annotations

from statistics import median

import altair as alt
import polars as pl

from dnsrig.analysis.published import Figure, s3
from dnsrig.analysis.read import Run, Trial
from dnsrig.analysis.summary import describe, lower_bound, main_metric
from dnsrig.report.charts import MAIN, Drawing, _look, _split
from dnsrig.report.figures import parameter, visible
from dnsrig.rundir import Variant

TITLE = "Time by carrier and congestion control"
ORDER = 9
METRICS = (MAIN, "served_s")

CARRIER, CASE = "carrier", "case"
"""Labels of the axes of rows and of panels."""
MEASURED = "measured here"
PUBLISHED = f"published: {s3.SOURCE}"
EXTRAPOLATED = "extrapolated to the source's size"
SHAPES = {
    "one repeat": "circle",
    "≥: at its limit": "triangle-right",
    "invalid": "diamond",
    EXTRAPOLATED: "square",
    PUBLISHED: "cross",
}
KINDS = {"done": "one repeat", "timeout": "≥: at its limit", "invalid": "invalid"}
FILLED = ("one repeat", PUBLISHED)
LANE_PX = 9
"""For each colour in a row."""
POINTS = {"row": pl.String, "lane": pl.String, "kind": pl.String, "value": pl.Float64}
SPANS = {"row": pl.String, "lane": pl.String, "low": pl.Float64, "high": pl.Float64, "middle": pl.Float64}
LEADS = {"row": pl.String, "lane": pl.String, "from_s": pl.Float64, "to_s": pl.Float64}
Row = dict[str, object]


def applies(run: Run) -> bool:
    return CARRIER in _split.varying_axes(run) and any(_value(trial) is not None for trial in run.trials)


def caption(run: Run) -> str:
    said = (
        "To the last zone served at the far site; what is pipelined is taken by the instrument, which stores and serves nothing. Each circle is one"
        " repeat; the bar spans the smallest to the largest, its tick is their median. The axis is logarithmic. An open triangle hit the limit and would"
        " have taken longer; an open diamond is invalid and does not count; where a server failed there is no mark."
    )
    if not any(s3.figure_of(spec) and s3.like_the_source(spec) for spec in run.manifest.specs.values()):
        return said
    return said + (
        " A cross is what S3 published for its size, over the same link; it does not name its congestion control. Where only fewer zones or records"
        " were measured, a dotted line leads to an open square: nothing that was measured, but the median times the source's size over"
        " ours. That is the source's own law, and too much for whatever a start costs once."
    )


def draw(run: Run) -> list[Drawing]:
    panels = [axis for axis in _split.varying_axes(run) if axis == CASE]
    cases = list(dict.fromkeys(_split.label(variant, panels) for variant in run.manifest.variants))
    drawn = {case: _rows(run, [v for v in run.manifest.variants if _split.label(v, panels) == case]) for case in cases}
    lanes = list(dict.fromkeys(_lane(run, variant) for variant in run.manifest.variants))
    if any(point["lane"] == PUBLISHED for points, _, _ in drawn.values() for point in points):
        lanes.append(PUBLISHED)
    built = [_panel(run, case, lanes, *rows) for case, rows in drawn.items() if rows[0]]
    return [Drawing("all", _look.stack(built))]


def _rows(run: Run, variants: list[Variant]) -> tuple[list[Row], list[Row], list[Row]]:
    """Of one panel: its marks, the spans of what counts, and the lines that lead from a median to what is extrapolated of it."""
    points: list[Row] = []
    spans: list[Row] = []
    leads: list[Row] = []
    whole = _whole(run)
    for variant in variants:
        place: Row = {"row": visible(parameter(variant.parameters[CARRIER])), "lane": _lane(run, variant)}
        trials = [(trial, value) for trial in run.of_variant(variant.id) if (value := _value(trial)) is not None]
        points += [{**place, "kind": KINDS[trial.record.outcome], "value": value} for trial, value in trials]
        counted = [value for trial, value in trials if trial.record.outcome != "invalid"]
        middle = median(counted) if counted else None
        if middle is not None:
            spans.append({**place, "low": min(counted), "high": max(counted), "middle": middle})
        spec = run.manifest.specs[variant.id]
        figure, size = s3.figure_of(spec), s3.size(spec)
        if figure is None or not s3.like_the_source(spec):
            continue
        told: Row = {"row": place["row"], "lane": PUBLISHED, "kind": PUBLISHED, "value": figure.value}
        points += [told] if told not in points else []
        limited = any(trial.record.outcome == "timeout" for trial, _ in trials)
        if middle is not None and not limited and (figure, place["lane"]) not in whole:
            there_s = size.extrapolated(middle)
            points.append({**place, "kind": EXTRAPOLATED, "value": there_s})
            leads.append({**place, "from_s": middle, "to_s": there_s})
    return points, spans, leads


def _panel(
    run: Run, case: str, lanes: list[str], points: list[Row], spans: list[Row], leads: list[Row]
) -> alt.LayerChart | alt.FacetChart:
    marks = pl.DataFrame(points, schema=POINTS)
    present = set(marks["row"])
    names = [name for value in run.manifest.axes[CARRIER] if (name := visible(parameter(value))) in present]
    metric = describe(main_metric(run))
    x = alt.X("value:Q", **_look.log_axis(marks["value"], f"{metric.title}, {metric.unit}"))
    y = alt.Y("row:N", sort=names, title=None, scale=alt.Scale(domain=names), axis=alt.Axis(grid=False))
    lane = alt.YOffset("lane:N", sort=lanes, scale=alt.Scale(domain=lanes))
    layers = _layers(marks, pl.DataFrame(spans, schema=SPANS), pl.DataFrame(leads, schema=LEADS), x, y, lane, lanes)
    return alt.layer(*layers).properties(
        width=_look.WIDTH - 60,
        height=len(names) * (LANE_PX * len(lanes) + 6),
        title="" if case == _split.ONLY else _look.heading(case),
    )


def _layers(
    marks: pl.DataFrame,
    spans: pl.DataFrame,
    leads: pl.DataFrame,
    x: alt.X,
    y: alt.Y,
    lane: alt.YOffset,
    lanes: list[str],
) -> list[alt.Chart]:
    of_lanes = dict(zip(lanes, _look.COLOURS, strict=False)) | ({PUBLISHED: _look.INK} if PUBLISHED in lanes else {})
    colours = alt.Scale(domain=lanes, range=[of_lanes.get(name, _look.MUTED) for name in lanes])
    legend = alt.Legend(columns=4, values=[name for name in lanes if name != PUBLISHED]) if len(lanes) > 1 else None
    colour = alt.Color("lane:N", scale=colours, legend=legend)
    kinds = [kind for kind in SHAPES if kind in set(marks["kind"])]
    shapes = alt.Scale(domain=kinds, range=[SHAPES[kind] for kind in kinds])
    shape = alt.Shape("kind:N", scale=shapes, legend=alt.Legend(columns=5) if len(kinds) > 1 else None)
    filled = pl.col("kind").is_in(FILLED)
    bars, lines = alt.Chart(spans), alt.Chart(leads)
    solid, hollow = alt.Chart(marks.filter(filled)), alt.Chart(marks.filter(~filled))
    return [
        bars.mark_bar(size=7, opacity=0.28).encode(alt.X("low:Q", scale=x["scale"]), y, alt.X2("high:Q"), lane, colour),
        lines.mark_rule(strokeDash=[1, 3], strokeWidth=1.2).encode(
            alt.X("from_s:Q", scale=x["scale"]), y, alt.X2("to_s:Q"), lane, colour
        ),
        bars.mark_tick(thickness=2, size=9, color=_look.INK).encode(alt.X("middle:Q", scale=x["scale"]), y, lane),
        solid.mark_point(filled=True, size=30, opacity=0.9).encode(x, y, lane, colour, shape),
        hollow.mark_point(size=36, opacity=1, strokeWidth=1.3).encode(x, y, lane, colour, shape),
    ]


def _whole(run: Run) -> set[tuple[Figure, str]]:
    """What the run measures at the source's size, so that nothing is to be extrapolated: the published figure, and the lane."""
    specs = ((variant, run.manifest.specs[variant.id]) for variant in run.manifest.variants)
    whole = ((s3.figure_of(spec), variant) for variant, spec in specs if s3.size(spec).same)
    return {(figure, _lane(run, variant)) for figure, variant in whole if figure is not None}


def _lane(run: Run, variant: Variant) -> str:
    """The variant's values on all axes but those of rows and panels."""
    apart = [axis for axis in _split.varying_axes(run) if axis not in (CARRIER, CASE)]
    label = _split.label(variant, apart)
    return MEASURED if label == _split.ONLY else label


def _value(trial: Trial) -> float | None:
    """What is drawn of a trial: its time, at its limit what is known of that; None of others."""
    name, outcome = trial.record.spec.main_metric, trial.record.outcome
    if outcome not in KINDS or CARRIER not in trial.record.spec.variant.parameters:
        return None
    found = lower_bound(trial, name) if outcome == "timeout" else trial.value(name)
    return found if found and found > 0 else None
