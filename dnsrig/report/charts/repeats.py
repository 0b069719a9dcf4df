"""A box over the repeats of each variant, each repeat with its number, and beside an outlier its cause."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.comparison.summary import describe, main_metric
from dnsrig.report import figures
from dnsrig.report.charts import MAIN, Drawing, _look, _split
from dnsrig.report.outliers import LEAST, Outlier, outliers, timed
from dnsrig.rundir import Finding, Variant
from dnsrig.runs.run import Run
from dnsrig.stats import statistics

TITLE = "Which repeats are outliers, and why?"
ORDER = 12
METRICS = (MAIN,)

ROW_PX = 52
"""Height of a variant: its box, and beneath it a line of words about an outlier."""
AXIS_PX = 62
"""Height of the axis and the heading of a panel."""
LINE_PX = 13
MOST_LINES = 3
"""Outliers of a variant with words; any others have their ring and number."""
BOX_PX = 20
PLOT_PX = _look.WIDTH - 60
CHARACTER_PX = 6
"""A digit in the size of the numbers, and as much as a space."""


def applies(run: Run) -> bool:
    return any(_box(run, variant) is not None for variant in run.manifest.variants)


def caption(run: Run) -> str:
    return (
        f"A box holds the middle half of a variant's finished repeats, and its tick is their median. Variants with at least"
        f" {statistics.FEWEST_REPEATS} repeats have a box. The thin line spans all repeats. Above it are the numbers of the"
        " repeats, from left to right where they are close."
        f" A ring marks an outlier: a repeat further from the box than {statistics.FENCE} times its width (Tukey 1977), and at least {LEAST:.0%} from"
        " the median repeat. Below it are that distance, and the traps that were found in it and not in most other repeats."
        " No repeat is left out of any figure." + _split.says_machines(run)
    )


def explain(run: Run, findings: Sequence[Finding]) -> list[Drawing]:
    found = outliers(run, findings)
    metric = describe(main_metric(run))
    marks = pl.DataFrame(list(_marks(run, run.manifest.variants)), infer_schema_length=None)
    title, scale = _look.measure(marks["value"], f"{metric.title}, {metric.unit}")
    x = alt.X("value:Q", title=title, scale=scale, axis=_look.axis_of(scale, 8))
    row_px = ROW_PX + LINE_PX * _lines_more(found)
    most = (_split.SCREEN_PX - 2 * _split.FRAME_PX) // row_px
    rows = [(zones, part) for zones in _split.zone_counts(run) for part in _split.rows_of(run, zones, most)]
    drawn = [(panel, part) for zones, part in rows if (panel := _panel(run, zones, part, found, x)) is not None]
    return _split.screens([panel for panel, _ in drawn], [row_px * len(part) + AXIS_PX for _, part in drawn])


def _lines_more(found: list[Outlier]) -> int:
    """The lines of words that a row needs beside its first."""
    return min(MOST_LINES - 1, max((line for _, line in _lined(found)), default=0))


def _box(run: Run, variant: Variant) -> statistics.Box | None:
    return statistics.box([value for value, _ in timed(run, variant.id)])


def _panel(
    run: Run, zones: int, variants: Sequence[Variant], found: list[Outlier], x: alt.X
) -> alt.LayerChart | alt.FacetChart | None:
    """Variants of one size. All sizes have one axis."""
    marks = pl.DataFrame(list(_marks(run, variants)), infer_schema_length=None)
    if marks.is_empty():
        return None
    marks = _placed(marks, x["scale"])
    names = list(dict.fromkeys(_split.label(v, _split.row_axes(run)) for v in variants))
    y = alt.Y("row:N", sort=names, title=None, scale=alt.Scale(domain=names), axis=alt.Axis(grid=False))
    ids = {variant.id for variant in variants}
    of_size = [outlier for outlier in found if outlier.trial.record.spec.variant.id in ids]
    layers = [
        *_box_layers(run, variants, x, y),
        *_number_layers(run, marks, x, y),
        *_cause_layers(run, of_size, marks, x, y),
    ]
    return alt.layer(*layers).properties(
        width=PLOT_PX,
        height=alt.Step(ROW_PX + LINE_PX * _lines_more(found)),
        title=_look.heading(figures.count(zones, "zone")) if _split.ZONES in run.manifest.axes else "",
    )


def _box_layers(run: Run, variants: Sequence[Variant], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    boxes = pl.DataFrame(list(_boxes(run, variants)), infer_schema_length=None)
    if boxes.is_empty():
        return []
    base = alt.Chart(boxes)
    colour = alt.Color("colour:N", scale=_look.colours(_split.colour_names(run)), legend=None)
    return [
        base.mark_rule(strokeWidth=1.4).encode(x, alt.X2("high:Q"), y, colour),
        base.mark_bar(height=BOX_PX, opacity=0.28).encode(alt.X("quarter:Q"), alt.X2("three_quarters:Q"), y, colour),
        base.mark_tick(thickness=2, size=BOX_PX + 2, color=_look.INK).encode(alt.X("median:Q"), y),
    ]


def _boxes(run: Run, variants: Sequence[Variant]) -> Iterable[dict[str, object]]:
    for variant in variants:
        box = _box(run, variant)
        if box is not None:
            yield {
                "row": _split.label(variant, _split.row_axes(run)),
                "colour": _split.colour_of(run, variant),
                "value": box.low,
                "quarter": box.quarter,
                "median": box.median,
                "three_quarters": box.three_quarters,
                "high": box.high,
            }


def _number_layers(run: Run, marks: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Each repeat as a mark; above it its number."""
    machine = _split.machine_shape(run)
    numbers = [label for row, of_row in marks.group_by("row", maintain_order=True) for label in _labels(row[0], of_row)]
    return [
        alt.Chart(marks)
        .mark_point(filled=True, size=30 if machine else 16, color=_look.INK, opacity=0.8)
        .encode(x, y, *machine),
        alt.Chart(pl.DataFrame(numbers))
        .mark_text(dy=-BOX_PX, fontSize=10, color=_look.MUTED)
        .encode(x, y, alt.Text("text:N")),
    ]


def _labels(row: object, marks: pl.DataFrame) -> list[dict[str, object]]:
    """The numbers of a row. Where marks are too close for theirs side by side, they share a line of them."""
    groups: list[_Label] = []
    for value, repeat, at_px in marks.sort("value").select("value", "repeat", "at_px").iter_rows():
        group = _Label([value], [repeat], [at_px])
        while groups and groups[-1].end_px > group.start_px:
            group = groups.pop().with_(group)
        groups.append(group)
    return [{"row": row, "value": (g.values[0] + g.values[-1]) / 2, "text": " ".join(g.repeats)} for g in groups]


@dataclass(frozen=True)
class _Label:
    """Numbers of neighbouring repeats, centred above them."""

    values: list[float]
    repeats: list[str]
    at_px: list[float]

    @property
    def start_px(self) -> float:
        return self._middle_px - self._width_px / 2

    @property
    def end_px(self) -> float:
        return self._middle_px + self._width_px / 2

    @property
    def _middle_px(self) -> float:
        return (self.at_px[0] + self.at_px[-1]) / 2

    @property
    def _width_px(self) -> float:
        return CHARACTER_PX * (len(" ".join(self.repeats)) + 1)

    def with_(self, right: _Label) -> _Label:
        return _Label(self.values + right.values, self.repeats + right.repeats, self.at_px + right.at_px)


def _marks(run: Run, variants: Sequence[Variant]) -> Iterable[dict[str, object]]:
    for variant in variants:
        for value, trial in timed(run, variant.id):
            yield {
                "row": _split.label(variant, _split.row_axes(run)),
                "value": value,
                "repeat": str(trial.record.spec.repeat),
                "machine": trial.machine,
                "trial": _split.trial_name(trial),
            }


def _placed(marks: pl.DataFrame, scale: alt.Scale) -> pl.DataFrame:
    """``marks`` with at_px: where on the axis each lies."""
    low, high = scale["domain"]
    value, ends = pl.col("value"), (float(low), float(high))
    if scale["type"] == "log":
        value, ends = value.log(), (math.log(low), math.log(high))
    return marks.with_columns(at_px=(value - ends[0]) / (ends[1] - ends[0]) * PLOT_PX)


def _cause_layers(run: Run, found: list[Outlier], marks: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A ring around each outlier, and beneath the box its cause, written towards the side where there is room."""
    if not found:
        return []
    smallest, largest = _look.extent(marks["value"])
    rows = pl.DataFrame(
        {
            "row": _split.label(outlier.variant, _split.row_axes(run)),
            "value": outlier.value,
            "text": figures.visible(f"repeat {outlier.repeat} ({outlier.apart}): {outlier.cause}"),
            "right": outlier.value > (smallest + largest) / 2,
            "line": line,
        }
        for outlier, line in _lined(found)
    )
    ring = alt.Chart(rows).mark_point(filled=False, shape="circle", size=110, strokeWidth=1.6, color=_look.COLOURS[1])
    words = [
        alt.Chart(of_side)
        .mark_text(dy=BOX_PX + LINE_PX * line, align="right" if right else "left", fontSize=11, color=_look.INK)
        .encode(x, y, alt.Text("text:N"))
        for (right, line), of_side in rows.filter(pl.col("line") < MOST_LINES).group_by(
            "right", "line", maintain_order=True
        )
    ]
    return [ring.encode(x, y), *words]


def _lined(found: list[Outlier]) -> list[tuple[Outlier, int]]:
    """Each outlier, and which line of words of its variant it has; the first is that furthest from the middle."""
    ranked = sorted(found, key=lambda outlier: abs(outlier.apart_percent), reverse=True)
    taken: Counter[str] = Counter()
    lined = []
    for outlier in ranked:
        lined.append((outlier, taken[outlier.variant.id]))
        taken[outlier.variant.id] += 1
    return lined
