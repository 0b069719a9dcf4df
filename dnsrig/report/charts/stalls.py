"""The times in which the whole server answered nothing, and what ran then: a differential flame graph (Gregg, ACM Queue
14(2), 2016)."""

from __future__ import annotations

from itertools import islice

import altair as alt
import polars as pl

from dnsrig.report import figures
from dnsrig.report.charts import Drawing, _differences, _flames, _look, _split
from dnsrig.report.charts._flames import LEAST_PERCENT, WIDTH_PX, Frame
from dnsrig.runs.profile import differences
from dnsrig.runs.run import Run
from dnsrig.runs.stalls import Stalls, stacks_of, stalls_of
from dnsrig.runs.trial import Trial
from dnsrig.traps.stalled_server import FEWEST_STACKS

TITLE = "What ran while the server answered nothing?"
ORDER = 33
METRICS = ("p99_ms", "p99_9_ms", "max_ms")

STEP_S, STEPS = 0.1, 600
"""Answers are counted by this along the axis of time, or by more, so that there are at most so many steps."""
TIMELINE_PX, FLAMES_PX = 90, 310
FUNCTIONS = 8
"""Number of functions that are named beside the flame graph."""
KINDS = ("in stalls", "otherwise")


def applies(run: Run) -> bool:
    return bool(_chosen(run))


def caption(run: Run) -> str:
    return (
        "Above: answers a second to all clients. In the coloured times no client had an answer. Below, if stacks were sampled"
        " (`profile = true`): the functions whose own share of the CPU samples differs most between the stalls and the other times,"
        f" and a flame graph of the stalls. A frame is orange if its share is larger in the stalls ({_differences.STEPS}), blue if it is"
        " smaller, and grey otherwise. Frames with a dark edge are the functions named above."
        f" Frames in less than {LEAST_PERCENT:g} % of the samples are left out."
        " The chart shows the median of each variant's repeats with a stall, if possible a repeat with stacks."
    )


def draw(run: Run) -> list[Drawing]:
    return [_drawing(trial, found, in_sight=number == 0) for number, (trial, found) in enumerate(_chosen(run))]


def _chosen(run: Run) -> list[tuple[Trial, Stalls]]:
    """The median repeat of each variant that stood still; the one with the longest stalls comes first."""
    chosen = []
    for variant in run.manifest.variants:
        stalled = {
            id(trial): found for trial in run.of_variant(variant.id) if (found := stalls_of(trial)) and found.found
        }
        trials = [trial for trial in run.of_variant(variant.id) if id(trial) in stalled]
        trial = _split.median([t for t in trials if not t.timed_stacks.is_empty()]) or _split.median(trials)
        if trial is not None:
            chosen.append((trial, stalled[id(trial)]))
    return sorted(chosen, key=lambda each: -each[1].total_ns)


def _drawing(trial: Trial, found: Stalls, *, in_sight: bool) -> Drawing:
    variant, repeat = trial.record.spec.variant, trial.record.spec.repeat
    inside, rest = stacks_of(trial, found)
    panels: list[alt.LayerChart | alt.FacetChart] = [_timeline(trial, found)]
    title = f"Repeat {repeat}: {in_words(found)}"
    if min(inside.total(), rest.total()) >= FEWEST_STACKS:
        more = (each for each in differences(inside, rest) if 100 * (each.share - each.other_share) >= LEAST_PERCENT)
        first = list(islice(more, FUNCTIONS))
        panels += [_differences.functions(first, KINDS)] if first else []
        named = {each.name for each in first[:3]}

        def look(frame: Frame) -> _flames.Look:
            return _differences.look(frame.end - frame.start - frame.other, named=frame.name in named)

        panels += [_flames.panel(_flames.layout(inside, rest), "percent of the samples in stalls", look, FLAMES_PX)]
        title += "".join(
            f"; {e.name} ran in {e.share:.0%} of the samples then, {e.other_share:.0%} otherwise" for e in first[:1]
        )
    name, chart = f"{variant.id}-{repeat:02d}", _look.stack(panels)
    title = figures.visible(title)
    return Drawing(name, chart, f"{variant.label}. {title}") if in_sight else Drawing(name, chart, title, variant.label)


def in_words(found: Stalls) -> str:
    """What the picture shows, for a title."""
    longest = figures.figure(found.longest_ns / 1e9, "s")
    return f"{figures.count(len(found.found), 'stall')}, {found.share:.1%} of the time, the longest {longest}"


def _timeline(trial: Trial, found: Stalls) -> alt.LayerChart | alt.FacetChart:
    end_s = found.span_ns / 1e9
    step_s = max(STEP_S, end_s / STEPS)
    number = ((pl.col("time_ns") - found.start_ns) / (step_s * 1e9)).floor().cast(pl.Int64)
    counted = dict(trial.answers.group_by(number.alias("step")).agg(pl.col("answered").sum()).iter_rows())
    steps = range(max(1, round(end_s / step_s)))
    rows = pl.DataFrame(
        {"second": [step * step_s for step in steps], "qps": [counted.get(step, 0) / step_s for step in steps]}
    )
    bands = pl.DataFrame(
        [{"from": (s.start_ns - found.start_ns) / 1e9, "to": (s.end_ns - found.start_ns) / 1e9} for s in found.found]
    )
    axis = alt.Scale(domain=[0, end_s], nice=False)
    line = alt.Chart(rows).mark_line(interpolate="step-after", color=_look.MUTED, strokeWidth=1)
    stalled = alt.Chart(bands).mark_rect(color=_differences.MORE, fillOpacity=0.35)
    return alt.layer(
        stalled.encode(alt.X("from:Q", scale=axis, title="seconds since the first query"), alt.X2("to:Q")),
        line.encode(
            alt.X("second:Q", scale=axis), alt.Y("qps:Q", title="answers/s", scale=_look.from_zero(rows["qps"]))
        ),
    ).properties(width=WIDTH_PX, height=TIMELINE_PX)
