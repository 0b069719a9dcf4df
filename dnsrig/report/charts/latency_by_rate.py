"""Latency against the rate of queries, up to where the server no longer follows: the knee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import altair as alt
import polars as pl

from dnsrig.report import figures
from dnsrig.report.charts import Drawing, _latency, _look, _split
from dnsrig.rundir import Variant
from dnsrig.runs.load_result import Try
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "How does latency grow with the rate of queries?"
ORDER = 8
METRICS = ("capacity_qps",)

LINE_PX = 13
"""Between the figures of capacity, written one below the other."""


@dataclass(frozen=True)
class Step:
    """One rate of a ramp, over its tries."""

    rate_qps: float
    p50_ms: float
    p99_ms: float
    holds: bool
    """Whether loss and latency stayed within the ramp's limits in most of the tries."""


def applies(run: Run) -> bool:
    return any(len(steps(trial)) > 1 for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "The steps of a ramp, in the median repeat of each variant. The thick line is p99, the thin line the median, both from the moment when a"
        " query was due. They include the lateness of the instrument, because a step records nothing else. A filled mark kept within"
        " the ramp's limits of loss and latency, an open mark did not. The upright line is the capacity: the highest rate that kept within the limits."
        " Look for the rate at which latency begins to rise."
    )


def draw(run: Run) -> list[Drawing]:
    chosen = {v.id: trial for v in run.manifest.variants if (trial := _chosen(run, v)) is not None}
    drawn = [variant for variant in run.manifest.variants if variant.id in chosen]
    panels = _latency.panels(run, drawn)
    wide = len(panels) == 1
    built = [_panel(run, variants, chosen, "" if wide else label) for label, variants in panels.items()]
    pairs = [alt.hconcat(*built[i : i + 2], spacing=24) for i in range(0, len(built), 2)]
    return _split.screens(pairs, _latency.HALF_PX)


def steps(trial: Trial) -> list[Step]:
    """The rates of the trial's ramp, ascending; tries at one rate count as one, and rates without latencies are left
    out."""
    by_rate: dict[float, list[Try]] = {}
    for step in trial.ramp.steps:
        if step.sent_qps and step.p50_ns and step.p99_ns:
            by_rate.setdefault(step.rate_qps, []).append(step)
    timeout_ns = trial.ramp.timeout_ns
    most_ms = None if timeout_ns is None else timeout_ns / 1e6
    return [_step(tries, most_ms) for _, tries in sorted(by_rate.items())]


def _step(tries: Sequence[Try], most_ms: float | None) -> Step:
    return Step(
        rate_qps=fmean(step.sent_qps for step in tries),
        p50_ms=fmean(_latency.shown_ms(int(step.p50_ns or 0), most_ms) for step in tries),
        p99_ms=fmean(_latency.shown_ms(int(step.p99_ns or 0), most_ms) for step in tries),
        holds=2 * sum(step.holds for step in tries) > len(tries),
    )


def _chosen(run: Run, variant: Variant) -> Trial | None:
    """The median repeat by capacity, of those with a ramp."""
    ramped = [t for t in run.done(variant.id) if len(steps(t)) > 1]
    ranked = sorted(ramped, key=lambda trial: trial.ramp.capacity_qps or 0.0)
    return ranked[(len(ranked) - 1) // 2] if ranked else None


def _panel(
    run: Run, variants: Sequence[Variant], chosen: dict[str, Trial], label: str
) -> alt.LayerChart | alt.FacetChart:
    """The variants that differ in colour alone; all panels have the axes of the whole."""
    everything = pl.DataFrame(list(_rows(run, [v for v in run.manifest.variants if v.id in chosen], chosen)))
    rows = pl.DataFrame(list(_rows(run, variants, chosen)))
    x_title, x_scale = _look.measure(everything["rate"], "rate, queries/s")
    x = alt.X("rate:Q", title=x_title, scale=x_scale, axis=alt.Axis(tickCount=6, format=",~r", labelOverlap="greedy"))
    title, scale, axis = _latency.milliseconds([*everything["p50"], *everything["p99"]], "latency, ms")
    y50, y99 = (alt.Y(f"{name}:Q", title=title, scale=scale, axis=axis) for name in ("p50", "p99"))
    colour, dash = _latency.encodings(run, chosen)
    base = alt.Chart(rows)
    points = [
        base.transform_filter(held)
        .mark_point(filled=filled, size=size, opacity=1, strokeWidth=1.4)
        .encode(x, y, colour)
        for held, filled, size in ((alt.datum.holds, True, 34), (~alt.datum.holds, False, 40))
        for y in (y99, y50)
    ]
    layers = [
        base.mark_line(strokeWidth=1, opacity=0.7).encode(x, y50, colour, dash),
        base.mark_line(strokeWidth=2).encode(x, y99, colour, dash),
        *points,
        *_capacities(run, variants, chosen, x, colour),
    ]
    return alt.layer(*layers).properties(
        width=(_look.WIDTH - 60) // 2 if label else _look.WIDTH,
        height=210 if label else 300,
        title=_look.heading(label) if label else "",
    )


def _rows(run: Run, variants: Sequence[Variant], chosen: dict[str, Trial]) -> Iterable[dict[str, object]]:
    for variant in variants:
        for step in steps(chosen[variant.id]):
            yield {
                "colour": _latency.name_of(run, variant),
                "rate": step.rate_qps,
                "p50": step.p50_ms,
                "p99": step.p99_ms,
                "holds": step.holds,
            }


def _capacities(
    run: Run, variants: Sequence[Variant], chosen: dict[str, Trial], x: alt.X, colour: alt.Color
) -> list[alt.Chart]:
    """An upright line at each capacity, and its figure: to the left of the line, each on a line of its own."""
    layers = []
    for number, variant in enumerate(variants):
        capacity = chosen[variant.id].ramp.capacity_qps
        if capacity is not None:
            text = f"{figures.figure(capacity)}/s"
            name = _latency.name_of(run, variant)
            base = alt.Chart(pl.DataFrame({"rate": [float(capacity)], "text": [text], "colour": [name]}))
            words = base.mark_text(align="right", baseline="top", dx=-4, dy=2 + LINE_PX * number, fontSize=10)
            layers.append(base.mark_rule(strokeWidth=1).encode(x, colour))
            layers.append(words.encode(x, alt.Text("text:N"), colour, y=alt.value(0)))
    return layers
