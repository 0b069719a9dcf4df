"""The chart of a metric over versions: each trial, the median of each version, and where it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt
import polars as pl

from dnsrig.comparison.history import Change, Point, Series
from dnsrig.report import figures
from dnsrig.report.charts import _look
from dnsrig.stats import statistics

HEIGHT_PX, LEAST_PX = 200, 60
"""Height of one panel, and least height; several are lower, so that all are on a screen."""
SCREEN_PX, LABELS_PX = 740, 80
"""For all panels; and for the versions below each."""
KINDS = {"better": _look.COLOURS[2], "worse": _look.COLOURS[1], "different": _look.INK}
LEGEND = ("done", "at least this (timeout)")

CAPTION = (
    "Each mark is a trial. A triangle reached a limit: its true value is larger. The black tick is the median of a version,"
    " the blue bar its 95 % interval (with at least 5 trials). A dashed line marks a change, with"
    " the median after it as a part of the median before. The grey level is the median of all trials between two changes."
    " Versions are at equal distances, whatever time or number of commits lies between them."
)


def draw(series: Sequence[Series]) -> alt.VConcatChart:
    """A panel a series; all of one metric."""
    height = max(LEAST_PX, min(HEIGHT_PX, SCREEN_PX // max(1, len(series)) - LABELS_PX))
    return _look.stack([_panel(one, height) for one in series])


def _panel(series: Series, height_px: int) -> alt.LayerChart | alt.FacetChart:
    values = pl.DataFrame(list(_trials(series)), schema={"version": pl.String, "value": pl.Float64, "mark": pl.String})
    title, scale = _look.measure(values["value"], f"{series.metric.title}, {series.metric.unit}")
    names = [figures.visible(point.label) for point in series.points]
    steep = sum(map(len, names)) * 7 > _look.WIDTH
    x = alt.X(
        "version:N",
        sort=names,
        title=None,
        scale=alt.Scale(domain=names),
        axis=alt.Axis(labelAngle=-40 if steep else 0, grid=False),
    )
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6, format=",~r"))
    step_px = _look.WIDTH / max(1, len(names))
    layers = [
        *_levels(series, x, y, step_px),
        *_medians(series, x, y, step_px),
        _marks(values, x, y),
        *_rules(series, x, step_px),
    ]
    return alt.layer(*layers).properties(
        width=_look.WIDTH, height=height_px, title=_look.heading(figures.visible(series.label))
    )


def _trials(series: Series) -> Iterator[dict[str, object]]:
    for point in series.points:
        for value in point.values:
            mark = LEGEND[value.sample.at_least]
            yield {"version": figures.visible(point.label), "value": value.sample.value, "mark": mark}


def _marks(values: pl.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    shape = alt.Shape("mark:N", scale=alt.Scale(domain=LEGEND, range=["circle", "triangle-up"]), legend=None)
    marked: alt.Chart = alt.Chart(values).mark_point(size=26, strokeWidth=1.2, color=_look.INK, opacity=0.75)
    return marked.encode(x, y, shape)


def _medians(series: Series, x: alt.X, y: alt.Y, step_px: float) -> list[alt.Chart]:
    rows = [row for point in series.points if (row := _median(point)) is not None]
    if not rows:
        return []
    schema = {"version": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    base = alt.Chart(pl.DataFrame(rows, schema=schema))
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=7, opacity=0.35, color=_look.COLOURS[0])
    ticks = base.mark_tick(orient="horizontal", size=min(26.0, 0.5 * step_px), thickness=2, color=_look.INK)
    return [bars.encode(x, alt.Y("low:Q"), alt.Y2("high:Q")), ticks.encode(x, y)]


def _median(point: Point) -> dict[str, object] | None:
    spread, interval = point.samples.spread, point.samples.interval
    if spread is None:
        return None
    ends = {"low": interval.low if interval else None, "high": interval.high if interval else None}
    return {"version": figures.visible(point.label), "value": spread.median, **ends}


def _levels(series: Series, x: alt.X, y: alt.Y, step_px: float) -> list[alt.Chart]:
    """The median of all trials between two changes, as wide as its versions."""
    sides = [*(change.before for change in series.changes[:1]), *(change.after for change in series.changes)]
    rows = [
        {"version": figures.visible(point.label), "value": level.median}
        for side in sides
        if (level := statistics.spread([value for point in side for value in point.samples.numbers])) is not None
        for point in side
    ]
    if not rows:
        return []
    ticks = alt.Chart(pl.DataFrame(rows)).mark_tick(orient="horizontal", size=step_px, thickness=2, color=_look.MUTED)
    return [ticks.encode(x, y)]


def _rules(series: Series, x: alt.X, step_px: float) -> list[alt.Chart]:
    """A line before the first version of each change."""
    layers: list[alt.Chart] = []
    for number, change in enumerate(series.changes):
        row = pl.DataFrame({"version": [figures.visible(change.first.label)], "text": [_told(change)]})
        base, colour = alt.Chart(row), KINDS[change.kind]
        rule = base.mark_rule(strokeDash=[4, 3], strokeWidth=1.6, color=colour, xOffset=-step_px / 2).encode(x)
        words = base.mark_text(align="left", fontSize=11, fontWeight=600, color=colour, xOffset=-step_px / 2 + 4)
        # One below the other by turns: neighbouring changes have room for their words.
        layers += [rule, words.encode(x, alt.Text("text:N"), y=alt.value(8 + 14 * (number % 3)))]
    return layers


def _told(change: Change) -> str:
    return f"{figures.of_before(change.comparison)}, {change.kind}"
