"""Every repeat of every variant as a mark on the axis of the main metric: what there is to know before any figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import altair as alt
import polars as pl

from dnsrig.comparison.summary import describe, lower_bound, main_metric, variant_table
from dnsrig.report import figures, wording
from dnsrig.report.charts import MAIN, Drawing, _latency, _look, _split
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "How do the variants compare, repeat by repeat?"
ORDER = 10
METRICS = (MAIN,)

ROW_PX = 34
AXIS_PX = 62
"""Height of the axis and the heading of a panel."""
SPREAD_PX = 13
"""Repeats lie within this distance of the middle of their row."""


def applies(run: Run) -> bool:
    return any(_value(trial) is not None for trial in run.trials)


def caption(run: Run) -> str:
    known = [v for t in run.trials if (v := t.value("probe_resolution_s")) is not None]
    resolution = (
        ""
        if describe(main_metric(run)).unit != "s"
        else f" The instrument resolves {figures.figure(median(known), 's')} (median; at worst"
        f" {figures.figure(max(known), 's')}): smaller differences mean nothing."
        if known
        else " The resolution of the instrument is not known."
    )
    return (
        "Each mark is one repeat, the first on top. The bar spans the smallest to the largest value, and its"
        " tick is the median. Look for bars that do not overlap, and for a repeat far from the others: a trap may"
        " give the reason. An open triangle hit the limit: with ≥ it would have taken longer, without ≥ it is the rate until"
        " then. ≥ without a triangle is a value at the end of its range, such as a latency at the client's timeout. A cross is a server that"
        " failed, drawn when it ended. An open diamond is invalid. Crosses and diamonds do not count in bar and tick."
        + f" {_latency.why_between(run)}, a line goes from the mark to its lower end." * _is_between(run)
        + _split.says_machines(run)
        + resolution
    )


def _is_between(run: Run) -> bool:
    return any(map(wording.is_between, variant_table(run, main_metric(run))))


def draw(run: Run) -> list[Drawing]:
    bands = list(_bands(run))
    marks = pl.DataFrame(list(_marks(run, run.trials)), infer_schema_length=None)
    metric = describe(main_metric(run))
    title, scale = _look.measure(pl.concat([marks["value"], marks["lower"]]), f"{metric.title}, {metric.unit}")
    x = alt.X("value:Q", title=title, scale=scale, axis=_look.axis_of(scale, 8))
    rows = [
        (zones, part)
        for zones in _split.zone_counts(run)
        for part in _split.rows_of(run, zones, (_split.SCREEN_PX - 2 * _split.FRAME_PX) // ROW_PX)
    ]
    drawn = [(panel, part) for zones, part in rows if (panel := _panel(run, zones, part, bands, x)) is not None]
    heights = [ROW_PX * len(part) + AXIS_PX for _, part in drawn]
    return _split.screens([panel for panel, _ in drawn], heights)


def _panel(
    run: Run, zones: int, variants: Sequence[Variant], bands: list[dict[str, object]], x: alt.X
) -> alt.LayerChart | alt.FacetChart | None:
    """Variants of one size. All sizes have one axis."""
    trials = [trial for variant in variants for trial in run.of_variant(variant.id)]
    marks = pl.DataFrame(list(_marks(run, trials)), infer_schema_length=None)
    if marks.is_empty():
        return None
    names = list(dict.fromkeys(_split.label(v, _split.row_axes(run)) for v in variants))
    y = alt.Y("row:N", sort=names, title=None, scale=alt.Scale(domain=names), axis=alt.Axis(grid=False))
    drawn = [band for band in bands if band["zones"] == zones and band["row"] in names]
    of_size = pl.DataFrame(drawn, infer_schema_length=None)
    layers = [*_band_layers(run, of_size, x, y), *_mark_layers(run, marks, x, y)]
    several = _split.ZONES in run.manifest.axes
    return alt.layer(*layers).properties(
        width=_look.WIDTH - 60,
        height=alt.Step(ROW_PX),
        title=_look.heading(figures.count(zones, "zone")) if several else "",
    )


def _colour(run: Run) -> alt.Color:
    """Without a legend: the rows are named."""
    return alt.Color("colour:N", scale=_look.colours(_split.colour_names(run)), legend=None)


def _band_layers(run: Run, bands: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The range of each row, and the tick of its median."""
    if bands.is_empty():
        return []
    base = alt.Chart(bands)
    return [
        base.mark_bar(height=24, opacity=0.22).encode(x, alt.X2("high:Q"), y, _colour(run)),
        base.mark_tick(thickness=2, size=26, color=_look.INK).encode(alt.X("median:Q"), y),
    ]


def _mark_layers(run: Run, marks: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A mark a repeat: filled when done, open otherwise, and at the limit with ≥ beside it."""
    shapes = _shapes(run)
    shape = alt.Shape(
        "shape:N",
        scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
        legend=None if list(shapes) == ["done"] else alt.Legend(),
    )
    # The offset keeps repeats with the same time apart, in the order in which they were measured.
    reach = [ROW_PX / 2 - SPREAD_PX, ROW_PX / 2 + SPREAD_PX]
    repeats = [trial.record.spec.repeat for trial in run.trials]
    domain = [min(repeats) - 1, max(repeats) + 1]
    offset = alt.YOffset("repeat:Q", scale=alt.Scale(domain=domain, range=reach, nice=False, zero=False))
    base = alt.Chart(marks)
    done = alt.datum.outcome == "done"
    filled = base.transform_filter(done).mark_point(filled=True, size=32, opacity=0.9)
    unfilled = base.transform_filter(~done).mark_point(filled=False, size=60, opacity=1, strokeWidth=1.6)
    bound = base.transform_filter(alt.datum.at_least).mark_text(text="≥", dx=11, fontSize=12, color=_look.INK)
    # Where the instrument was late, a line goes from the mark, the upper end, to the lower.
    lower = base.transform_filter(alt.datum.lower < alt.datum.value).mark_rule(strokeWidth=1.2)
    return [
        lower.encode(x, alt.X2("lower:Q"), y, offset, _colour(run)),
        filled.encode(x, y, offset, _colour(run), shape),
        unfilled.encode(x, y, offset, _colour(run), shape),
        bound.encode(x, y, offset),
    ]


def _shapes(run: Run) -> dict[str, str]:
    """Meaning of a shape -> the shape: the machine of a trial that is done, or else its outcome. All panels of a run
    share them."""
    seen = {_shape(run, trial) for trial in run.trials}
    machines = dict(zip(_split.machines(run), _split.machine_shapes(run), strict=True))
    return {name: shape for name, shape in (machines | _look.OUTCOME_SHAPES).items() if name in seen}


def _shape(run: Run, trial: Trial) -> str:
    outcome = trial.record.outcome
    return trial.machine if outcome == "done" and _split.machines(run) else outcome


def _bands(run: Run) -> Iterable[dict[str, object]]:
    for row in variant_table(run, main_metric(run)):
        if row.samples.spread is not None:
            yield {
                "zones": run.manifest.specs[row.variant.id].dataset.zones,
                "row": _split.label(row.variant, _split.row_axes(run)),
                "colour": _split.colour_of(run, row.variant),
                "value": row.samples.spread.low,
                "high": row.samples.spread.high,
                "median": row.samples.spread.median,
            }


def _marks(run: Run, trials: list[Trial]) -> Iterable[dict[str, object]]:
    for trial in trials:
        value = _value(trial)
        if value is not None:
            metric = describe(trial.record.spec.main_metric)
            variant = trial.record.spec.variant
            yield {
                "row": _split.label(variant, _split.row_axes(run)),
                "colour": _split.colour_of(run, variant),
                "value": value,
                "lower": metric.lower_end(trial, value),
                "outcome": trial.record.outcome,
                "shape": _shape(run, trial),
                "at_least": metric.at_ceiling(trial, value)
                or (trial.record.outcome == "timeout" and not metric.counts(trial)),
                "repeat": trial.record.spec.repeat,
                "trial": _split.trial_name(trial),
            }


def _value(trial: Trial) -> float | None:
    """Where the trial is drawn: its result, its limit, or else, on an axis of time, when it ended."""
    spec = trial.record.spec
    counts = describe(spec.main_metric).counts(trial)
    value = lower_bound(trial, spec.main_metric) if trial.record.outcome == "timeout" and not counts else trial.result
    return _split.elapsed_s(trial) if value is None and describe(spec.main_metric).unit == "s" else value
