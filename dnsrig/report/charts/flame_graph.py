"""Where the CPU time of the server under test went: a flame graph (Gregg, ACM Queue 14(2), 2016) of a trial's stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import altair as alt
import polars as pl

from dnsrig.analysis.profile import PORT_SEARCH_FRAMES, hottest, share
from dnsrig.analysis.read import Run, Trial
from dnsrig.report import figures
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.charts._flames import LEAST_PERCENT, MOST_DEPTH, ROW_PX, WIDTH_PX, label

TITLE = "Where the CPU time went"
ORDER = 34
METRICS = ("secondary_cpu_s", "primary_cpu_s")


@dataclass
class _Node:
    """A frame at one place of the stacks: the samples that it was in, and what it called."""

    count: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """A rectangle: from where to where, in percent of the samples, and how far from the outermost frame."""

    name: str
    depth: int
    start: float
    end: float
    searching: bool
    """Whether it searches for a free port, or is part of that."""


def applies(run: Run) -> bool:
    return any(trial.stacks for trial in run.trials)


def caption(run: Run) -> str:
    return (
        f"CPU time of the {_split.subject(run)} during `measure`, as sampled by perf: the wider a frame, the more of the"
        " samples it was in. What it called stands on it; side by side they are in the order of the alphabet, not of time."
        " Frames of the search for a free port and all on them have the colour. Of each variant the median repeat of"
        f" those with a profile; frames in less than {LEAST_PERCENT:g} % of the samples, and those more than"
        f" {MOST_DEPTH} deep, are left out. What perf found no name for is [unknown]; a program without frame pointers"
        " has broken stacks, so trust the kernel's frames and the innermost ones."
    )


def draw(run: Run) -> list[Drawing]:
    """One a variant; that in which a trial took longest is in sight, the others are folded away."""
    chosen = {v.id: trial for v in run.manifest.variants if (trial := _chosen(run.of_variant(v.id))) is not None}
    slowest = max(chosen.values(), key=lambda trial: _split.elapsed_s(trial) or 0.0)
    return [
        _drawing(trial, in_sight=trial is slowest) for trial in sorted(chosen.values(), key=lambda t: t is not slowest)
    ]


def _chosen(trials: list[Trial]) -> Trial | None:
    """The median repeat of those with stacks."""
    return _split.median([trial for trial in trials if trial.stacks])


def _drawing(trial: Trial, *, in_sight: bool) -> Drawing:
    variant, repeat = trial.record.spec.variant, trial.record.spec.repeat
    stacks = trial.stacks
    title = f"Repeat {repeat}: {in_words(stacks)}"
    name = f"{variant.id}-{repeat:02d}"
    chart = _look.stack([_panel(stacks)])
    return Drawing(name, chart, f"{variant.label}. {title}") if in_sight else Drawing(name, chart, title, variant.label)


def in_words(stacks: Mapping[str, int]) -> str:
    """What the picture shows, for a title."""
    hot, searching = hottest(stacks), share(stacks, PORT_SEARCH_FRAMES)
    if hot is None or searching is None:
        return "no samples"
    return (
        f"of {figures.count(sum(stacks.values()), 'sample')}, {figures.figure(100 * searching, '%')} in the search for a"
        f" free port; the hottest frame by itself is {hot[0]} with {figures.figure(100 * hot[1], '%')}"
    )


def layout(stacks: Mapping[str, int]) -> list[Frame]:
    """The frames that are wide enough to be seen."""
    root = _Node()
    for stack, count in stacks.items():
        root.count += count
        node = root
        for name in stack.split(";")[:MOST_DEPTH]:
            node = node.children.setdefault(name, _Node())
            node.count += count
    return list(_placed(root, 0.0, 0, 100 / root.count, searching=False)) if root.count else []


def _placed(node: _Node, start: float, depth: int, percent: float, *, searching: bool) -> Iterator[Frame]:
    """The frames that ``node`` called; a sample is worth ``percent``."""
    for name, child in sorted(node.children.items()):
        end = start + child.count * percent
        if end - start >= LEAST_PERCENT:
            found = searching or name in PORT_SEARCH_FRAMES
            yield Frame(name, depth, start, end, found)
            yield from _placed(child, start, depth + 1, percent, searching=found)
        start = end


def _panel(stacks: Mapping[str, int]) -> alt.LayerChart | alt.FacetChart:
    frames = layout(stacks)
    rows = pl.DataFrame(
        [
            {
                "start": round(frame.start, 3),
                "end": round(frame.end, 3),
                "middle": round((frame.start + frame.end) / 2, 3),
                "bottom": frame.depth,
                "top": frame.depth + 1,
                "label": label(frame.name, frame.end - frame.start),
                "searching": frame.searching,
            }
            for frame in frames
        ]
    )
    depth = max((frame.depth + 1 for frame in frames), default=1)
    x = alt.X(
        "start:Q",
        title="percent of the samples",
        scale=alt.Scale(domain=[0, 100], nice=False),
        axis=alt.Axis(tickCount=10, grid=False),
    )
    y = alt.Y("bottom:Q", title=None, scale=alt.Scale(domain=[0, depth], nice=False), axis=None)
    base = alt.Chart(rows)
    ends = (alt.X2("end:Q"), alt.Y2("top:Q"))
    # A second sign beside the colour: its frames have edges, the others gaps.
    plain = base.transform_filter(~alt.datum.searching).mark_rect(color=_look.GRID, stroke=_look.PAPER, strokeWidth=1)
    search = base.transform_filter(alt.datum.searching).mark_rect(
        color=_look.COLOURS[1], fillOpacity=0.45, stroke=_look.COLOURS[1], strokeWidth=1
    )
    words = base.transform_filter(alt.datum.label != "").mark_text(fontSize=10, color=_look.INK)
    return alt.layer(
        plain.encode(x, y, *ends),
        search.encode(x, y, *ends),
        words.encode(alt.X("middle:Q"), alt.Y("height:Q"), alt.Text("label:N")).transform_calculate(
            height=(alt.datum.bottom + alt.datum.top) / 2
        ),
    ).properties(width=WIDTH_PX, height=depth * ROW_PX)
