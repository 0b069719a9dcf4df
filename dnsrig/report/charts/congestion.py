"""What one connection brings by the congestion control of its sender, the published figures beside it."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import polars as pl

from dnsrig.analysis.published import figures, s4
from dnsrig.analysis.read import Run
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.figures import parameter, visible

TITLE = "Throughput by congestion control"
ORDER = 9
METRICS = (s4.METRIC,)

MEASURED = "measured here"
HEIGHT_PX = 260
DRAWN = ("done", "timeout", "invalid")


def applies(run: Run) -> bool:
    return s4.AXIS in _split.varying_axes(run) and any(True for _ in _measured(run))


def caption(run: Run) -> str:
    said = (
        "Each mark is one repeat; the bar spans the smallest to the largest, its tick is their median. The axis is logarithmic. Repeats differ by"
        " the seed of the link's loss, and the same repeat of each algorithm has the same seed. An open diamond is invalid and does not count."
    )
    beside = " Beside it what S4 published: a range as a bar, one figure as a tick." if _published(run) else ""
    return said + beside


def draw(run: Run) -> list[Drawing]:
    measured = pl.DataFrame(list(_measured(run)), infer_schema_length=None)
    published = pl.DataFrame(
        _published(run),
        schema={
            "algorithm": pl.String,
            "group": pl.String,
            "low": pl.Float64,
            "high": pl.Float64,
            "middle": pl.Float64,
        },
    )
    groups = list(dict.fromkeys([*measured["group"], *published["group"]]))
    algorithms = [visible(parameter(value)) for value in run.manifest.axes[s4.AXIS]]
    ends = pl.concat([measured["value"].cast(pl.Float64), published["low"], published["high"]])
    y = alt.Y("value:Q", **_look.log_axis(ends.filter(ends > 0), "kB/s"))
    x = alt.X("algorithm:N", title=None, scale=alt.Scale(domain=algorithms), axis=alt.Axis(labelAngle=0))
    aside = alt.XOffset("group:N", scale=alt.Scale(domain=groups))
    colour = alt.Color("group:N", scale=_look.colours(groups), legend=alt.Legend(columns=3))
    layers = [*_spans(measured, published, x, y, aside, colour), *_points(measured, x, y, aside, colour)]
    picture = alt.layer(*layers).properties(width=_look.WIDTH, height=HEIGHT_PX)
    return [Drawing("all", _look.stack([picture]))]


def _spans(
    measured: pl.DataFrame, published: pl.DataFrame, x: alt.X, y: alt.Y, aside: alt.XOffset, colour: alt.Color
) -> list[alt.Chart]:
    counted = measured.filter(pl.col("outcome") != "invalid")
    spans = counted.group_by("algorithm", "group", maintain_order=True).agg(
        low=pl.col("value").min(), high=pl.col("value").max(), middle=pl.col("value").median()
    )
    both = pl.concat([spans, published.select(spans.columns)])
    ranges = both.filter(pl.col("high") > pl.col("low"))
    bars = alt.Chart(ranges).mark_bar(size=11, opacity=0.28)
    medians, told = (
        alt.Chart(rows.drop_nulls("middle").select("algorithm", "group", value="middle")) for rows in (spans, published)
    )
    return [
        bars.encode(x, alt.Y("low:Q", scale=y["scale"]), alt.Y2("high:Q"), aside, colour),
        medians.mark_tick(thickness=2, size=15, color=_look.INK).encode(x, y, aside),
        told.mark_tick(thickness=3, size=15).encode(x, y, aside, colour),
    ]


def _points(measured: pl.DataFrame, x: alt.X, y: alt.Y, aside: alt.XOffset, colour: alt.Color) -> list[alt.Chart]:
    base = alt.Chart(measured)
    invalid = base.transform_filter(alt.datum.outcome == "invalid")
    valid = base.transform_filter(alt.datum.outcome != "invalid")
    return [
        valid.mark_point(filled=True, size=20, opacity=0.9).encode(x, y, aside, colour),
        invalid.mark_point(shape="diamond", size=44, opacity=1, strokeWidth=1.2).encode(x, y, aside, colour),
    ]


def _measured(run: Run) -> Iterable[dict[str, object]]:
    others = [axis for axis in _split.varying_axes(run) if axis != s4.AXIS]
    for variant in run.manifest.variants:
        label = _split.label(variant, others)
        for trial in run.of_variant(variant.id):
            value = trial.value(s4.METRIC)
            if value and trial.record.outcome in DRAWN and s4.AXIS in variant.parameters:
                yield {
                    "algorithm": visible(parameter(variant.parameters[s4.AXIS])),
                    "group": MEASURED if label == _split.ONLY else label,
                    "value": value,
                    "outcome": trial.record.outcome,
                }


def _published(run: Run) -> list[dict[str, object]]:
    """Those of the algorithms drawn, where the path is that of the source."""
    if run.manifest.experiment != "congestion-control" or any(s4.path(spec) for spec in run.manifest.specs.values()):
        return []
    drawn = {str(value) for value in run.manifest.axes[s4.AXIS]}
    return [
        {
            "algorithm": figure.variant,
            "group": f"published: {figure.source.id}",
            "low": figure.low if figure.low is not None else figure.value,
            "high": figure.high if figure.high is not None else figure.value,
            "middle": figure.value,
        }
        for figure in figures()
        if (figure.source.id, figure.metric) == ("S4", "throughput") and figure.variant in drawn
    ]
