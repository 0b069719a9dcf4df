"""Where the CPU time of the server under test went: a flame graph (Gregg, ACM Queue 14(2), 2016) of a trial's
stacks."""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.report import figures
from dnsrig.report.charts import Drawing, _flames, _look, _split
from dnsrig.report.charts._flames import LEAST_PERCENT, MOST_DEPTH, Frame
from dnsrig.runs.profile import PORT_SEARCH_FRAMES, hottest, share
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "Where did the CPU time go?"
ORDER = 34
METRICS = ("secondary_cpu_s", "primary_cpu_s")


SEARCHING = _flames.Look(_look.COLOURS[1], 0.45, _look.COLOURS[1])
"""Look of frames that search for a free port: beside the colour, they have edges where others have gaps."""


def applies(run: Run) -> bool:
    return any(trial.stacks for trial in run.trials)


def caption(run: Run) -> str:
    return (
        f"CPU time of the {_split.subject(run)} during `measure`, as sampled by perf. The wider a frame, the more"
        " samples it was in. The functions that it called are on top of it, in alphabetical order, not in the order of time."
        " Coloured frames belong to the search for a free port. The chart shows the median of each variant's repeats with"
        f" a profile. Frames in less than {LEAST_PERCENT:g} % of the samples, and frames more than"
        f" {MOST_DEPTH} deep, are left out. Functions without a name are [unknown]. Programs without frame pointers"
        " have broken stacks: then trust only the kernel's frames and the innermost frames."
    )


def draw(run: Run) -> list[Drawing]:
    """One a variant; that in which a trial took longest is in sight, the others are folded away."""
    chosen = {v.id: trial for v in run.manifest.variants if (trial := _chosen(run.of_variant(v.id))) is not None}
    slowest = max(chosen.values(), key=lambda trial: _split.elapsed_s(trial) or 0.0)
    return [
        of_trial(trial, in_sight=trial is slowest) for trial in sorted(chosen.values(), key=lambda t: t is not slowest)
    ]


def _chosen(trials: list[Trial]) -> Trial | None:
    """The median repeat of those with stacks."""
    return _split.median([trial for trial in trials if trial.stacks])


def of_trial(trial: Trial, *, in_sight: bool = True) -> Drawing:
    variant, repeat = trial.record.spec.variant, trial.record.spec.repeat
    stacks = trial.stacks
    title = f"Repeat {repeat}: {in_words(stacks)}"
    name = f"{variant.id}-{repeat:02d}"
    chart = _look.stack([_flames.panel(_flames.layout(stacks), "percent of the samples", _look_of)])
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


def _look_of(frame: Frame) -> _flames.Look:
    return SEARCHING if is_searching(frame) else _flames.PLAIN


def is_searching(frame: Frame) -> bool:
    """Whether it searches for a free port, or is part of that."""
    return not PORT_SEARCH_FRAMES.isdisjoint(frame.stack)
