"""The generic chart of a metric against an axis of the matrix: each repeat as a mark, the span and the median of each
group.

Numbers lie along a logarithmic axis and lines join the medians; of names, each group has a lane of its own beside the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt
import polars as pl

from dnsrig.comparison.summary import describe, lower_bound, main_metric
from dnsrig.report import phrases
from dnsrig.report.charts import MAIN, Chart, Drawing, _look, _split
from dnsrig.report.names import varying_axes
from dnsrig.rundir import Finding, TrialSpec, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

MEASURED = "measured here"
TIMEOUT = "timeout"
DRAWN = ("done", TIMEOUT, "invalid")
"""Outcomes of trials that have a mark."""
COMPUTED = " (□: for its size)"
"""Behind the name of a published figure in the legend."""
HALF_PX = 250
"""Width of two panels with their axis and headings."""
LANE_PX = 9
"""Height of a group in a row."""
MARKS = {
    **dict.fromkeys(("panel", "place", "group", "way", "machine"), pl.String),
    "value": pl.Float64,
    "outcome": pl.String,
    **dict.fromkeys(("counts", "at_least", "apart"), pl.Boolean),
}
"""Columns of a frame with a row a repeat and way: ``place`` on the axis, ``group`` is its colour and ``way`` its dash,
what ``counts`` is in span and median, ``at_least``: the true value is only known to be that, ``apart``: it is drawn as
an open square."""
BESIDE = {
    **dict.fromkeys(("panel", "place", "group"), pl.String),
    **dict.fromkeys(("value", "low", "high", "origin"), pl.Float64),
}


@dataclass(frozen=True)
class Reference:
    """A mark beside the measured ones: a published figure; with ``origin``, an extrapolation from there; along numbers,
    a point of a line."""

    panel: str
    place: str | float
    group: str
    value: float | None
    low: float | None = None
    """Lower end of a figure that is a range; ``high`` is the upper one."""
    high: float | None = None
    origin: float | None = None


@dataclass(frozen=True)
class MetricByAxis(Chart):
    axis: str
    """An axis of the matrix."""
    says: str
    """The caption."""
    ways: Mapping[str, str]
    """What tells metrics in one panel apart (empty of a single one) -> the metric."""
    measure: str = ""
    """What the metrics are called together."""
    number: Callable[[TrialSpec], float | None] | None = None
    """Where a trial lies on an axis of numbers; None of a trial that has no place there."""
    panel_axes: Callable[[Run], Sequence[str]] = lambda run: ()
    """The axes that make panels; colours show all other axes that vary."""
    across: bool = False
    """Whether the names are headings of rows, not of columns: for long names."""
    logarithmic: bool = True
    apart: Callable[[Trial], bool] = lambda trial: False
    """Repeats that are open squares in the first of ``ways``."""
    beside: Callable[[MetricByAxis, Run, pl.DataFrame], list[Reference]] = lambda chart, run, marks: []
    """Makes the references beside the marks of a run."""
    says_beside: str = ""
    """What the caption adds then."""

    def applies(self, run: Run) -> bool:
        marks = self.marks(run)
        if self.number is None:
            return self.axis in varying_axes(run) and not marks.is_empty()
        return marks.filter("counts")["place"].n_unique() > 1

    def caption(self, run: Run) -> str:
        said = f"{self.says} {self.says_beside}" if self.beside(self, run, self.marks(run)) else self.says
        lanes = " Groups are side by side in the order of the legend." if self.number is None else ""
        return f"{said}{_split.says_machines(run)}{lanes}" if _split.machines(run) else said

    def draw(self, run: Run, findings: Sequence[Finding]) -> list[Drawing]:
        marks = self.marks(run)
        beside = pl.DataFrame(list(map(asdict, self.beside(self, run, marks))), schema=self._schema(BESIDE))
        look = _Look(self, run, marks, beside)
        panels = list(dict.fromkeys(marks["panel"]))
        built = [look.panel(panel, alone=len(panels) == 1) for panel in panels]
        columns = 1 if self.across else 2
        rows = [alt.hconcat(*built[i : i + columns], spacing=24) for i in range(0, len(built), columns)]
        return _split.screens(rows, look.across_px if self.across else HALF_PX)

    def marks(self, run: Run) -> pl.DataFrame:
        """Columns of ``MARKS``; the place is a number on an axis of numbers."""
        return pl.DataFrame(list(self._marks(run)), schema=self._schema(MARKS))

    def _schema(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        return {**columns, "place": pl.String if self.number is None else pl.Float64}

    def _marks(self, run: Run) -> Iterable[dict[str, object]]:
        for variant in run.manifest.variants:
            panel, group = self.where(run, variant)
            for trial in run.of_variant(variant.id):
                place = self.place(trial.record.spec)
                for number, (way, name) in enumerate(self.ways.items()):
                    found = _found(trial, main_metric(run) if name == MAIN else name)
                    if place and found:
                        apart = number == 0 and self.apart(trial)
                        at = {"panel": panel, "group": group, "place": place, "way": way, "machine": trial.machine}
                        yield {**at, **found, "apart": apart, "trial": _split.trial_name(trial)}

    def where(self, run: Run, variant: Variant) -> tuple[str, str]:
        """Its panel, and its group there."""
        panels = [axis for axis in self.panel_axes(run) if axis != self.axis]
        rest = [axis for axis in varying_axes(run) if axis not in (self.axis, *panels)]
        group = _split.label(variant, rest)
        return _split.label(variant, panels), MEASURED if group == _split.ONLY else group

    def place(self, spec: TrialSpec) -> str | float | None:
        if self.number is not None:
            return self.number(spec)
        value = spec.variant.parameters.get(self.axis)
        return None if value is None else phrases.of(self.axis, value)


def _found(trial: Trial, name: str) -> dict[str, object]:
    """What is drawn of a trial's metric, the lower bound at its limit; empty where nothing is."""
    metric, outcome = describe(name), trial.record.outcome
    counts = metric.counts(trial)
    bound = lower_bound(trial, name) if outcome == TIMEOUT and not counts else None
    value = bound if outcome == TIMEOUT and not counts else trial.value(name)
    if outcome not in DRAWN or not value or value < 0:
        return {}
    at_least = bound is not None or metric.at_ceiling(trial, value)
    return {"value": value, "outcome": outcome, "counts": counts or bound is not None, "at_least": at_least}


class _Look:
    """How one chart is drawn: what all its panels share."""

    def __init__(self, kind: MetricByAxis, run: Run, marks: pl.DataFrame, beside: pl.DataFrame) -> None:
        self.kind, self.marks, self.beside = kind, marks, beside
        self.joined = kind.number is not None
        """Whether lines join the places: they do if the places are numbers."""
        self.groups = list(dict.fromkeys(marks["group"]))
        self.lanes = list(dict.fromkeys([*self.groups, *beside["group"]]))
        self.at_ends = self.joined and len(kind.ways) == 1 and _look.named_at_ends(self.lanes)
        present = {*marks["place"], *beside["place"]}
        names = [phrases.of(kind.axis, value) for value in run.manifest.axes.get(kind.axis, [])]
        self.places: list[Any] = sorted(present) if self.joined else [name for name in names if name in present]
        place, value, end, offset = (
            (alt.Y, alt.X, alt.X2, alt.YOffset) if kind.across else (alt.X, alt.Y, alt.Y2, alt.XOffset)
        )
        self.place, self.value = place(**self._place()), value(**self._value(run))
        self.low, self.high, self.origin = value("low:Q", scale=self.value["scale"]), end("high:Q"), end("origin:Q")
        lanes = offset("group:N", sort=self.lanes, scale=alt.Scale(domain=self.lanes))
        self.offset = [] if self.joined else [lanes]
        self.colour, self.dash, shape = self._of_groups()
        self.machine = _split.machine_shape(run)
        # Lanes tell groups apart where shapes do machines.
        self.shape = [] if self.joined or self.machine else [shape]

    def panel(self, name: str, *, alone: bool) -> Any:
        marks, beside = (rows.filter(pl.col("panel") == name) for rows in (self.marks, self.beside))
        width, height = (_look.WIDTH, 280) if alone else ((_look.WIDTH - 60) // 2, 190)
        if self.kind.across:
            width, height = _look.WIDTH - 60, self.across_px - 60
        names = _look.at_ends(self._ends(marks), self.value, width, height, self.scale) if self.at_ends else []
        layers = [*self._spans(marks), *self._beside(beside), *self._repeats(marks), *names]
        title = "" if name == _split.ONLY else _look.heading(name)
        return alt.layer(*layers).properties(width=width, height=height, title=title)

    @property
    def across_px(self) -> int:
        """Height of a panel whose names are headings of rows, with its axis."""
        lanes = min(LANE_PX * len(self.lanes) + 6, (_split.SCREEN_PX - 2 * _split.FRAME_PX) // len(self.places))
        return len(self.places) * lanes + 60

    def _ends(self, marks: pl.DataFrame) -> dict[str, float]:
        """Where the line of each group ends."""
        medians = (
            marks.filter("counts")
            .group_by("group", "place", maintain_order=True)
            .agg(pl.col("value").median())
            .sort("place")
        )
        return dict(medians.group_by("group", maintain_order=True).last().select("group", "value").iter_rows())

    def _place(self) -> dict[str, Any]:
        if not self.joined:
            scale, axis = alt.Scale(domain=self.places), alt.Axis(grid=False, labelAngle=0)
            return {"shorthand": "place:N", "sort": self.places, "title": None, "scale": scale, "axis": axis}
        scale = alt.Scale(type="log", domain=[self.places[0] / 1.15, self.places[-1] * 1.15], nice=False)
        axis = alt.Axis(values=self.places, format=",", grid=False, labelOverlap="greedy")
        title = f"{phrases.name(self.kind.axis)} (log scale)"
        return {"shorthand": "place:Q", "title": title, "scale": scale, "axis": axis}

    def _value(self, run: Run) -> dict[str, Any]:
        first = next(iter(self.kind.ways.values()))
        metric = describe(main_metric(run) if first == MAIN else first)
        values = pl.concat([self.marks["value"], *(self.beside[name] for name in ("value", "low", "high"))])
        title, (least, most) = f"{self.kind.measure or metric.title}, {metric.unit}", _look.extent(values)
        if self.kind.logarithmic or most > _look.LOG_ABOVE * least:
            found = _look.log_axis(values, title)
        else:
            title, scale = _look.measure(values, title)
            found = {"title": title, "scale": scale, "axis": alt.Axis(tickCount=6, format=",~r")}
        if metric.unit == "B":
            found["axis"].format = "~s"
        return {"shorthand": "value:Q", **found}

    def _of_groups(self) -> tuple[alt.Color, alt.StrokeDash, alt.Shape]:
        """How groups differ: lines by dashes, lanes by shapes. References use none of their colours."""
        beside = len(self.lanes) - len(self.groups)
        looks: dict[str, Any] = (
            {"symbolType": "stroke", "symbolSize": 300} if self.joined and len(self.kind.ways) == 1 else {}
        )
        if self.beside["origin"].is_not_null().any():
            looks |= {"labelExpr": f"datum.label + (indexof(datum.label, 'published: ') == 0 ? '{COMPUTED}' : '')"}
        legend = alt.Legend(columns=3, **looks) if len(self.lanes) > 1 and not self.at_ends else None

        def scale(of: Callable[[Sequence[str]], alt.Scale], other: Any) -> alt.Scale:
            return alt.Scale(domain=self.lanes, range=[*of(self.groups)["range"], *[other] * beside])

        colour = self.scale = scale(_look.colours, _look.MUTED if self.joined else _look.INK)
        dash = alt.StrokeDash("group:N", scale=scale(_look.dashes, [2, 3]), legend=legend)
        if len(self.kind.ways) > 1:
            dash = alt.StrokeDash("way:N", scale=_look.dashes(list(self.kind.ways)), sort=list(self.kind.ways))
        return (
            alt.Color("group:N", scale=colour, legend=legend),
            dash,
            alt.Shape("group:N", scale=scale(_look.shapes, "cross"), legend=legend),
        )

    def _spans(self, marks: pl.DataFrame) -> list[alt.Chart]:
        value = pl.col("value")
        grouped = marks.filter("counts").group_by("place", "group", "way", maintain_order=True)
        spans = alt.Chart(grouped.agg(low=value.min(), high=value.max(), value=value.median()))
        ends = (self.place, self.low, self.high, *self.offset, self.colour)
        if self.joined:
            area, line = spans.mark_area(opacity=0.16), spans.mark_line(strokeWidth=1.6)
            return [
                area.encode(*ends, alt.Detail("way:N")),
                line.encode(self.place, self.value, self.colour, self.dash),
            ]
        tick = spans.mark_tick(thickness=2, size=11, color=_look.INK)
        return [spans.mark_bar(size=7, opacity=0.28).encode(*ends), tick.encode(self.place, self.value, *self.offset)]

    def _beside(self, beside: pl.DataFrame) -> list[alt.Chart]:
        if beside.is_empty():
            return []
        at = (self.place, self.value, *self.offset, self.colour)
        if self.joined:
            return [alt.Chart(beside).mark_line(strokeWidth=1.6).encode(*at, self.dash)]
        told, derived = (alt.Chart(beside.filter(each)) for each in (pl.col("origin").is_null(), pl.col("origin") > 0))
        return [
            told.mark_bar(size=7, opacity=0.28).encode(self.place, self.low, self.high, *self.offset, self.colour),
            told.mark_point(filled=True, size=34, opacity=0.9).encode(*at, *self.shape),
            derived.mark_rule(strokeDash=[1, 3], strokeWidth=1.2).encode(*at, self.origin),
            derived.mark_point(shape="square", size=36, opacity=1, strokeWidth=1.3).encode(*at),
        ]

    def _repeats(self, marks: pl.DataFrame) -> list[alt.Chart]:
        """Filled where done, open otherwise; ≥ beside what is only known to be at least so much."""
        base, at = alt.Chart(marks), (self.place, self.value, *self.offset, self.colour)
        shape = [*self.shape, *self.machine]
        done, apart = alt.datum.outcome == "done", alt.datum.apart
        limit = "triangle-right" if self.kind.across else "triangle-up"
        open_ = {limit: alt.datum.outcome == TIMEOUT, "diamond": alt.datum.outcome == "invalid", "square": done & apart}
        bound = base.transform_filter(alt.datum.at_least).mark_text(text="≥", dx=-11, fontSize=12, color=_look.INK)
        return [
            base.transform_filter(done & ~apart).mark_point(filled=True, size=26, opacity=0.9).encode(*at, *shape),
            *(
                base.transform_filter(which)
                .mark_point(shape=open_shape, size=46, opacity=1, strokeWidth=1.4)
                .encode(*at)
                for open_shape, which in open_.items()
            ),
            bound.encode(self.place, self.value, *self.offset),
        ]
