"""How slow the slowest queries are: latency against the slowest percentile, so that the tail has most of the room.

It is drawn as in S2 and in P. Spacek's measurements at ISC: both axes logarithmic, a line for the mean of
all repeats and a band from the smallest to the largest. Where the instrument was late, a latency is known between two
ends: the band covers both, and a second, thin line shows the lower ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import altair as alt
import polars as pl

from dnsrig.comparison.summary import baseline_of
from dnsrig.metrics.latency import timeout_ms
from dnsrig.report import figures, wording
from dnsrig.report.charts import Drawing, _latency, _look, _split
from dnsrig.rundir import Variant
from dnsrig.runs.latency import Histogram
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "How slow are the slowest queries?"
ORDER = 5
METRICS = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "p99_99_ms", "max_ms")

POINTS = 60
"""Points of a line: twelve a decade."""
LEAST_PERCENT = 0.001
FEWEST_ANSWERS = 10
"""Below, chance decides more than the server does."""
LOWER, WORDS_PERCENT = "thin line: the least that it took", (3.0, 40.0)
"""What explains the lower ends, and in which part of the axis these words have room."""
MOST_BANDS = 4
"""In a panel: more of them cover each other, and no line can be followed."""


@dataclass(frozen=True)
class Point:
    """A variant at one slowest percentile: over its repeats."""

    percent: float
    mean_ms: float
    low_ms: float
    high_ms: float
    lower_ms: float
    """The mean of the lower ends: ``mean_ms`` where nothing is known below it."""


def applies(run: Run) -> bool:
    return any(_latency.with_latency(run, variant) for variant in run.manifest.variants)


def caption(run: Run) -> str:
    floor = any(_latency.is_floor(run, variant) for variant in run.manifest.variants)
    return (
        "At 1 %, read: the slowest 1 % of the queries took longer than this; the median is at 50 %."
        + _counted(run)
        + " Line: mean of the repeats. Band: smallest to largest."
        + _between(run)
        + " Look for lines that differ towards the right: a mean hides that. In the shaded part, a point depends on fewer than"
        f" {FEWEST_ANSWERS} answers of a repeat."
        + (
            " The grey dotted line is the floor: what the instrument and the machine need without any server."
            if floor
            else ""
        )
        + _left_out(run)
    )


def _counted(run: Run) -> str:
    """From which moment."""
    unanswered = "a query without an answer counts as the client's timeout"
    if not any(_latency.from_sending(run, variant) for variant in run.manifest.variants):
        return f" Times count from the moment when a query was due, and {unanswered}."
    return (
        " Times count from the moment when a query was due, except in lines named “from sending”: they leave out how long the tool"
        " kept a query waiting before it sent it, so a lower line is not a better one. A query without an answer counts as the"
        f" client's timeout. If a file does not contain their number, “{run.manifest.title}” says so."
    )


def _between(run: Run) -> str:
    curves = (curve(_latency.with_latency(run, variant)) for variant in run.manifest.variants)
    if not any(map(_visibly_between, curves)):
        return ""
    if wording.causes_of_ends(run) == {"buckets"}:
        return f" {_latency.why_between(run)}, the band covers the whole bucket, from the thin line to the thick line."
    return (
        f" {_latency.why_between(run)} the true latency lies between two ends: the thick line counts from the due time, the thin line"
        " below it is the least that the server took, and the band covers both."
    )


def _left_out(run: Run) -> str:
    """Results of tools that have no distribution: a mean is no percentile."""
    without = [v.label for v in run.manifest.variants if run.done(v.id) and not _latency.with_latency(run, v)]
    if not without:
        return ""
    return f" Not drawn, because they have no distribution of latency: {', '.join(map(figures.visible, without))}."


def draw(run: Run) -> list[Drawing]:
    curves = {variant.id: curve(_latency.with_latency(run, variant)) for variant in run.manifest.variants}
    curves = {variant: points for variant, points in curves.items() if points}
    drawn = [variant for variant in run.manifest.variants if variant.id in curves]
    whole = _latency.panels(run, drawn)
    panels = _few_in_each(run, whole)
    wide = len(panels) == 1
    everything = [point for points in curves.values() for point in points]
    at_ends = _latency.named_at_ends(run, panels.values())
    built = [
        _panel(
            run,
            variants,
            curves,
            () if at_ends else curves if panels == whole else {variant.id for variant in variants},
            everything,
            "" if wide else label,
        )
        for label, variants in panels.items()
    ]
    pairs = [alt.hconcat(*built[i : i + 2], spacing=24) for i in range(0, len(built), 2)]
    if panels == whole or at_ends:
        return _split.screens(pairs, _latency.HALF_PX)
    # Each panel has a legend of its own: with many variants, colours and dashes come twice.
    apart: dict[str, Any] = {"color": "independent", "strokeDash": "independent"}
    return _split.screens(
        [pair.resolve_scale(**apart) for pair in pairs], _latency.HALF_PX + _latency.LEGEND_PX, **apart
    )


def _few_in_each(run: Run, panels: dict[str, list[Variant]]) -> dict[str, list[Variant]]:
    """``panels`` with at most ``MOST_BANDS`` variants each; the baseline and the floor are in all of them."""
    found: dict[str, list[Variant]] = {}
    for label, variants in panels.items():
        common = [v for v in variants if _latency.is_floor(run, v) or baseline_of(run, v) == v][: MOST_BANDS - 1]
        others = [variant for variant in variants if variant not in common]
        size = len(others) if len(variants) <= MOST_BANDS else MOST_BANDS - len(common)
        parts = [others[start : start + size] for start in range(0, len(others), size or 1)] or [[]]
        for number, part in enumerate(parts, 1):
            name = label if len(parts) == 1 else f"{number} of {len(parts)}"
            name = name if label in (name, _split.ONLY) else f"{label}, {name}"
            found[name] = [variant for variant in variants if variant in common or variant in part]
    return found


def grid(fewest: int) -> list[float]:
    """Slowest percentiles from 100 % down to the last that means at least one of ``fewest`` queries."""
    last = max(LEAST_PERCENT, 100 / max(1, fewest))
    ratio = (last / 100) ** (1 / (POINTS - 1))
    return [100 * ratio**number for number in range(POINTS - 1)] + [last]


def curve(trials: Sequence[Trial]) -> list[Point]:
    """The curve of a variant's repeats; empty without any."""
    known = [trial.latency for trial in trials if trial.latency is not None]
    totals = [latency.total(latency.result) for latency in known]
    if not totals:
        return []
    percents = grid(min(total.total for total in totals))
    lower = [latency.total(latency.lower) for latency in known]
    upper_ms, lower_ms = (_lines_ms(found, percents, _timeout_ms(trials)) for found in (totals, lower))
    return [
        Point(percent, fmean(upper), min(*upper, *least), max(upper), fmean(least))
        for percent, upper, least in zip(percents, upper_ms, lower_ms)
    ]


def _lines_ms(totals: Sequence[Histogram], percents: Sequence[float], most_ms: float | None) -> list[list[float]]:
    """At each of ``percents`` the latencies of all repeats."""
    lines = [total.percentiles([100 - percent for percent in percents]) for total in totals]
    return [[_latency.shown_ms(value, most_ms) for value in values] for values in zip(*lines)]


def _visibly_between(points: Sequence[Point]) -> bool:
    return any(point.lower_ms < _latency.VISIBLE * point.mean_ms for point in points)


def _timeout_ms(trials: Iterable[Trial]) -> float | None:
    return min((ms for trial in trials if (ms := timeout_ms(trial)) is not None), default=None)


def _panel(
    run: Run,
    variants: Sequence[Variant],
    curves: dict[str, list[Point]],
    named: Collection[str],
    everything: Sequence[Point],
    label: str,
) -> alt.LayerChart | alt.FacetChart:
    """The variants that differ in colour alone; all panels have the axes of the whole. ``named``: the variants in the
    legend; without any, names are at the ends of the lines."""
    trials = [trial for variant in variants for trial in _latency.with_latency(run, variant)]
    last = min(point.percent for point in everything)
    x_scale = alt.Scale(type="log", domain=[100, last], nice=False)
    ticks = [tick for tick in (100, 10, 1, 0.1, 0.01, 0.001) if tick >= last]
    x_axis = alt.Axis(values=ticks, labelExpr="format(datum.value, '~r') + ' %'")
    x = alt.X("percent:Q", title="slowest share of the queries (log scale)", scale=x_scale, axis=x_axis)
    values = [value for point in everything for value in (point.low_ms, point.high_ms)]
    title, scale, axis = _latency.milliseconds(values, "latency, ms")
    y = alt.Y("mean:Q", title=title, scale=scale, axis=axis)
    largest = max(point.high_ms for variant in variants for point in curves[variant.id])
    width, height = ((_look.WIDTH - 60) // 2, 210) if label else (_look.WIDTH, 320)
    ends = {_latency.name_of(run, variant): curves[variant.id][-1].mean_ms for variant in variants}
    layers = [
        *_few(trials, x, x_scale, last),
        *_curves(run, variants, curves, named, x, y),
        *_latency.timeout_line(_timeout_ms(trials), largest, y),
        *([] if named else _latency.at_ends(run, variants, ends, y, (width, height))),
    ]
    return alt.layer(*layers).properties(
        width=width,
        height=height,
        title=_look.heading(label) if label else "",
    )


def _curves(
    run: Run, variants: Sequence[Variant], curves: dict[str, list[Point]], named: Collection[str], x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """``named``: the variants in the legend."""
    rows = pl.DataFrame(list(_rows(run, variants, curves)))
    colour, dash = _latency.encodings(run, named or curves, legend=bool(named))
    base = alt.Chart(rows)
    layers = [
        base.mark_area(opacity=0.18).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
        base.mark_line(strokeWidth=2).encode(x, y, colour, dash),
    ]
    if rows["between"].any():
        lower = base.transform_filter(alt.datum.between)
        layers.append(lower.mark_line(strokeWidth=1).encode(x, alt.Y("lower:Q"), colour))
        inside = rows.filter("between", pl.col("percent").is_between(*WORDS_PERCENT))
        widest = inside.sort(pl.col("lower") / pl.col("mean")).head(1).with_columns(text=pl.lit(LOWER))
        words = alt.Chart(widest).mark_text(align="left", baseline="top", dy=6, fontSize=10, color=_look.MUTED)
        layers.append(words.encode(x, alt.Y("lower:Q"), alt.Text("text:N")))
    return layers


def _rows(run: Run, variants: Sequence[Variant], curves: dict[str, list[Point]]) -> Iterable[dict[str, object]]:
    for variant in variants:
        between = _visibly_between(curves[variant.id])
        for point in curves[variant.id]:
            values = {"mean": point.mean_ms, "low": point.low_ms, "high": point.high_ms, "lower": point.lower_ms}
            values["between"] = between
            yield {"colour": _latency.name_of(run, variant), "percent": point.percent} | values


def _few(trials: Sequence[Trial], x: alt.X, scale: alt.Scale, last: float) -> list[alt.Chart]:
    """The part in which fewer than ``FEWEST_ANSWERS`` queries of the smallest repeat stand behind a point."""
    fewest = min(known.total(known.result).total for trial in trials if (known := trial.latency) is not None)
    begins = min(100.0, 100 * FEWEST_ANSWERS / fewest)
    if begins <= last:
        return []
    rows = pl.DataFrame({"percent": [begins], "end": [last], "text": [f"fewer than {FEWEST_ANSWERS} answers →"]})
    base = alt.Chart(rows)
    return [
        base.mark_rect(color=_look.MUTED, opacity=0.12).encode(x, alt.X2("end:Q")),
        base.mark_rule(color=_look.MUTED, strokeWidth=1).encode(x),
        base.mark_text(align="right", baseline="bottom", dx=-4, dy=-3, fontSize=10, color=_look.MUTED).encode(
            x, alt.Text("text:N"), y=alt.value("height")
        ),
    ]
