"""What the charts of latency share: which trials, which panels, where the instrument's own floor lies."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import altair as alt
import polars as pl

from dnsrig.comparison.summary import describe
from dnsrig.report import wording
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.names import varying_axes
from dnsrig.rundir import Variant
from dnsrig.runs.latency import Histogram, Interval, merge
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

MOST_VARIANTS = 12
"""Variants for which pictures over time are drawn: the page stays small enough to mail."""

MOST_STRETCHES = 60
"""Along the axis of time; with more intervals, neighbours are drawn as one."""

VISIBLE = 0.97
"""Lower to upper end, from which on both would be one line: of four decades on 320 pixels a pixel is 3 %."""
PERCENTS = (0, 25, 50, 75, 100)
"""Percentiles of the boxes; where the ends differ at these, both are drawn."""

LEAST_NS = 1_000
"""No answer comes sooner; the first bucket of some tools begins at zero, which has no place on a logarithmic axis."""

HALF_PX, LEGEND_PX = 270, 60
"""Width of a row of two panels with its axis and headings; height of a legend below it."""

TICKS_MS = [10.0**power for power in range(-3, 6)]


def with_latency(run: Run, variant: Variant) -> list[Trial]:
    """The variant's trials that are done and have a distribution."""
    done = run.done(variant.id)
    return [trial for trial in done if (known := trial.latency) is not None and known.total(known.result).total]


def intervals(trial: Trial) -> tuple[list[Interval], list[Interval]]:
    """Intervals from the due time, as many as can be drawn, and their lower ends; no lower ends if they cannot be
    distinguished."""
    assert trial.latency is not None
    known = trial.latency
    upper, lower = (stretches(known.intervals(tag)) for tag in (known.result, known.lower))
    pairs = [(a.histogram.percentiles(PERCENTS), b.histogram.percentiles(PERCENTS)) for a, b in zip(upper, lower)]
    apart = any(least < VISIBLE * most for ends in pairs for most, least in zip(*ends))
    return upper, lower if apart else []


def is_floor(run: Run, variant: Variant) -> bool:
    """Whether the variant shows the instrument, beside others that show servers."""
    return _reflects(run, variant) and not all(_reflects(run, other) for other in run.manifest.variants)


def _reflects(run: Run, variant: Variant) -> bool:
    """Whether its server only reflects queries, so that its latency is that of the instrument and the machine."""
    server = run.manifest.specs[variant.id].server
    driver = all_drivers().get(server.kind) if server else None
    return driver is not None and driver.reflects


def name_of(run: Run, variant: Variant) -> str:
    """The name of the variant's colour."""
    floor = ": floor, no server" if is_floor(run, variant) else ""
    return _split.colour_of(run, variant) + floor + (": from sending" if from_sending(run, variant) else "")


def from_sending(run: Run, variant: Variant) -> bool:
    """Whether the clock of its latencies starts when a query is sent, not when it is due."""
    imported = run.manifest.specs[variant.id].imported
    return imported is not None and imported.basis == "sending"


def colour(run: Run, variant: Variant) -> str:
    """The variant's colour, as in all charts; the floor is grey."""
    if is_floor(run, variant):
        return _look.MUTED
    return _look.COLOURS[_place(run, variant) % len(_look.COLOURS)]


def _dash(run: Run, variant: Variant) -> list[int]:
    return _look.FLOOR_DASH if is_floor(run, variant) else list(_look.DASHES[_place(run, variant) % len(_look.DASHES)])


def _place(run: Run, variant: Variant) -> int:
    return _split.colour_names(run).index(_split.colour_of(run, variant))


def named_at_ends(run: Run, panels: Iterable[Sequence[Variant]]) -> bool:
    """Whether each panel has few enough lines for names at their ends."""
    names = [[name_of(run, variant) for variant in variants] for variants in panels]
    fit = all(len(of_panel) == 1 or _look.named_at_ends(of_panel) for of_panel in names)
    return fit and len({name for of_panel in names for name in of_panel}) > 1


def at_ends(
    run: Run, variants: Iterable[Variant], ends: Mapping[str, float], y: alt.Y, size_px: tuple[int, int]
) -> list[alt.Chart]:
    """The names of lines right of a plot of this width and height: `name_of` -> where its line ends on ``y``."""
    examples = {name_of(run, variant): variant for variant in variants}
    scale = alt.Scale(domain=list(examples), range=[colour(run, variant) for variant in examples.values()])
    return _look.at_ends(ends, y, *size_px, scale) if len(named_variants(run)) > 1 else []


def named_variants(run: Run) -> set[str]:
    """What lines are called in the whole run: a single name needs no place."""
    return {name_of(run, variant) for variant in run.manifest.variants}


def encodings(run: Run, drawn: Container[str], *, legend: bool = True) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dash of the column ``colour``: the floor grey and dotted, the servers as in all charts. The legend
    names the variants whose ids are in ``drawn``, also a single one of several."""
    names = {name_of(run, variant): variant for variant in run.manifest.variants}
    examples = {name_of(run, variant): variant for variant in run.manifest.variants if variant.id in drawn}
    shown = alt.Legend(columns=2, symbolType="stroke", symbolSize=300) if legend and len(names) > 1 else None
    colours = alt.Scale(domain=list(examples), range=[colour(run, v) for v in examples.values()])
    dashes = alt.Scale(domain=list(examples), range=[_dash(run, v) for v in examples.values()])
    return (
        alt.Color("colour:N", scale=colours, legend=shown),
        alt.StrokeDash("colour:N", scale=dashes, legend=shown),
    )


def panels(run: Run, variants: Iterable[Variant]) -> dict[str, list[Variant]]:
    """``variants`` by what tells panels apart: every axis that varies, but for the one of colours."""
    axes = [axis for axis in varying_axes(run) if axis != _split.colour_axis(run)]
    found: dict[str, list[Variant]] = {}
    for variant in variants:
        found.setdefault(_split.label(variant, axes), []).append(variant)
    return found


def shown_ms(value_ns: int, timeout_ms: float | None = None) -> float:
    """Where a latency is drawn: on a logarithmic axis, so not below `LEAST_NS`, and not beyond the client's timeout."""
    value_ms = max(LEAST_NS, value_ns) / 1e6
    return value_ms if timeout_ms is None else min(timeout_ms, value_ms)


def milliseconds(values_ms: Sequence[float], title: str) -> tuple[str, alt.Scale, alt.Axis]:
    """Title, scale and axis of times that lie decades apart."""
    low, high = min(values_ms) / 1.15, max(values_ms) * 1.25
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    ticks = [tick for tick in TICKS_MS if low <= tick <= high]
    if len(ticks) < 2:
        ticks = [step * tick for tick in TICKS_MS for step in (1, 2, 5) if low <= step * tick <= high]
    axis = alt.Axis(values=ticks, format=",~r") if len(ticks) > 1 else alt.Axis(tickCount=4, format=",~r")
    return f"{title} (log scale)", scale, axis


def timeout_line(timeout_ms: float | None, largest_ms: float, y: alt.Y, *, words_above: bool = True) -> list[alt.Chart]:
    """The client's timeout, where something reaches it: that took at least so long."""
    if timeout_ms is None or largest_ms < timeout_ms:
        return []
    text = f"≥ {timeout_ms / 1e3:g} s: the client's timeout"
    field = str(y["shorthand"]).partition(":")[0]
    base = alt.Chart(pl.DataFrame({field: [timeout_ms], "text": [text]}))
    return [
        base.mark_rule(color=_look.INK, strokeDash=[4, 3], strokeWidth=1).encode(y),
        base.mark_text(
            align="left",
            baseline="bottom" if words_above else "top",
            dx=4,
            dy=-3 if words_above else 4,
            fontSize=10,
            color=_look.INK,
        ).encode(y, alt.Text("text:N"), x=alt.value(0)),
    ]


def drawing(run: Run, trial: Trial, chart: alt.VConcatChart, *, in_sight: bool) -> Drawing:
    """A picture of one trial over time."""
    variant, repeat = trial.record.spec.variant, trial.record.spec.repeat
    metric = describe(trial.record.spec.main_metric)
    title = f"Repeat {repeat}, the median: {metric.title} {wording.of_trial(trial, metric)}"
    name = f"{variant.id}-{repeat:02d}"
    label = variant.label
    return Drawing(name, chart, f"{label}. {title}") if in_sight else Drawing(name, chart, title, label)


def stretches(intervals: Sequence[Interval]) -> list[Interval]:
    """``intervals``, neighbours merged so that at most ``MOST_STRETCHES`` are left."""
    step = max(1, -(-len(intervals) // MOST_STRETCHES))
    groups = [intervals[first : first + step] for first in range(0, len(intervals), step)]
    return [
        Interval(
            group[0].offset_s,
            group[-1].offset_s + group[-1].duration_s - group[0].offset_s,
            merge(interval.histogram for interval in group),
        )
        for group in groups
    ]


def over_time(run: Run) -> list[Trial]:
    """The median repeat of each variant with several intervals, that with the slowest answers first; no more than
    ``MOST_VARIANTS``."""
    medians = [
        _split.median(with_latency(run, variant)) for variant in run.manifest.variants if not is_floor(run, variant)
    ]
    chosen = [
        trial for trial in medians if trial and (known := trial.latency) and len(known.intervals(known.result)) > 1
    ]
    chosen.sort(key=lambda trial: _slowest(trial).percentile(99) or 0, reverse=True)
    return chosen[:MOST_VARIANTS]


def _slowest(trial: Trial) -> Histogram:
    assert trial.latency is not None
    return trial.latency.total(trial.latency.result)


def why_between(run: Run) -> str:
    """Why a latency is known between two ends, at the beginning of a sentence."""
    causes = wording.causes_of_ends(run)
    if len(causes) > 1:
        return "Where a tool counts in buckets, or an instrument was late,"
    return "Where a tool counts in buckets" if causes == {"buckets"} else "Where the instrument was late"


def between(run: Run, drawn: str) -> str:
    """The caption's sentence about ends, if any differ; ``drawn``: how the lower ends are drawn."""
    if not any(intervals(trial)[1] for trial in over_time(run)):
        return ""
    ends = {
        "lateness": ("the latency from the due time", "the least that the server took"),
        "buckets": ("their upper ends", "their lower ends"),
    }
    causes = wording.causes_of_ends(run)
    upper, lower = ends[causes.pop()] if len(causes) == 1 else ("the upper end", "the lower one")
    return f" {why_between(run)} the true latency lies between {upper} and {lower}: {drawn}."


def which(run: Run) -> str:
    """The variants in pictures over time, in words."""
    return (
        "The charts show the median repeat of each variant. The variant with the slowest answers (p99) is in sight, the others are folded away."
        f" At most {MOST_VARIANTS} variants are drawn."
        if len(run.manifest.variants) > 1
        else "The chart shows the median repeat."
    )
