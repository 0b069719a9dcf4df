"""How the matrix is laid out in charts: the number of zones apart, the server by colour, the rest by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from dnsrig.comparison.summary import describe
from dnsrig.report import phrases
from dnsrig.report.charts import Drawing, _look
from dnsrig.report.names import varying_axes
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

ZONES = "zones"
"""The axis that is drawn along x wherever it is in the matrix."""

ONLY = "all"
"""Stands for the one value of an axis that has no other."""


SCREEN_PX = 800
"""No drawing is taller: a reader sees the whole of it."""
FRAME_PX = 60
"""Approximate room of a drawing beside its panels: padding, the axis of the last, a legend of one line."""


def screens(rows: Sequence[Any], heights_px: Sequence[float] | float, spacing: int = 16, **apart: Any) -> list[Drawing]:
    """``rows`` of panels one below the other, in as many drawings as keep each within a screen; ``heights_px``: of each
    row with its axis; ``apart``: scales that each row has for itself."""
    heights = [heights_px] * len(rows) if isinstance(heights_px, int | float) else heights_px
    parts: list[list[Any]] = []
    left = 0.0
    for row, height in zip(rows, heights, strict=True):
        if not parts or left < height:
            parts.append([])
            left = SCREEN_PX - FRAME_PX
        parts[-1].append(row)
        left -= height + spacing
    drawn = [_look.stack(part, spacing) for part in parts]
    drawn = [each.resolve_scale(**apart) for each in drawn] if apart else drawn
    if len(drawn) == 1:
        return [Drawing("all", drawn[0])]
    return [Drawing(str(n), each, f"Part {n} of {len(drawn)}") for n, each in enumerate(drawn, start=1)]


def subject(run: Run) -> str:
    """The host whose server is under test; all variants have the same procedure, and so the same."""
    first = next(iter(run.manifest.specs.values()), None)
    return first.subject if first else "secondary"


def colour_axis(run: Run) -> str | None:
    """The axis that decides colours: the server, or the baseline's axis, or the first one."""
    axes = [axis for axis in varying_axes(run) if axis != ZONES]
    servers = [axis for axis in axes if "server" in axis.lower()]
    compared = [axis for axis in axes if axis in run.manifest.baseline]
    return next(iter([*servers, *compared, *axes]), None)


def other_axes(run: Run) -> list[str]:
    """The axes with more than one value, without the zones and the axis of the colours."""
    return [axis for axis in varying_axes(run) if axis not in (ZONES, colour_axis(run))]


def row_axes(run: Run) -> list[str]:
    """What names a row: the axes that vary, zones apart; where none does, all of them."""
    varying = [axis for axis in varying_axes(run) if axis != ZONES]
    return varying or [axis for axis in run.manifest.axes if axis != ZONES]


def colour_of(run: Run, variant: Variant) -> str:
    axis = colour_axis(run)
    return label(variant, [axis] if axis else [])


def colour_names(run: Run) -> list[str]:
    """Names of the colours, in the order of the matrix."""
    return list(dict.fromkeys(colour_of(run, variant) for variant in run.manifest.variants))


def label(variant: Variant, axes: Sequence[str]) -> str:
    """The variant's values on ``axes`` in words, made safe to show."""
    return phrases.of_variant(variant, axes) or ONLY


def machines(run: Run) -> list[str]:
    """Machines, which have a shape each; empty if the run was on one machine."""
    names = [machine.name for machine in run.manifest.machines]
    return names if len(names) > 1 else []


def machine_shapes(run: Run) -> list[str]:
    """A shape for each of `machines`; shapes repeat if there are more machines than shapes."""
    return list(itertools.islice(itertools.cycle(_look.MACHINE_SHAPES), len(machines(run))))


def machine_shape(run: Run) -> list[alt.Shape]:
    """The encoding of the column ``machine``; none of a run on one."""
    scale = alt.Scale(domain=machines(run), range=machine_shapes(run))
    legend = alt.Legend(symbolFillColor=_look.INK)  # what is open is an outcome
    return [alt.Shape("machine:N", scale=scale, legend=legend)] if machines(run) else []


def says_machines(run: Run) -> str:
    """What a caption adds, with a space before it."""
    return " The shape of a filled mark is the machine that measured it." if machines(run) else ""


def rows_of(run: Run, zones: int, most: int) -> list[list[Variant]]:
    """The variants of one size, at most ``most`` in a panel."""
    found = [v for v in run.manifest.variants if run.manifest.specs[v.id].dataset.zones == zones]
    return [found[start : start + most] for start in range(0, len(found), most)]


def zone_counts(run: Run) -> list[int]:
    """The sizes of the matrix, smallest first."""
    return sorted({spec.dataset.zones for spec in run.manifest.specs.values()})


def best_first(trials: Iterable[Trial]) -> list[Trial]:
    """By the main metric; what is not done counts as worse than all that is."""

    def rank(trial: Trial) -> tuple[bool, float]:
        sign = -1 if describe(trial.record.spec.main_metric).better == "higher" else 1
        return trial.record.outcome != "done", sign * (trial.result or 0.0)

    return sorted(trials, key=rank)


def median(trials: Iterable[Trial]) -> Trial | None:
    """The repeat in the middle of ``trials``; of an even number the better one."""
    ranked = best_first(trials)
    return ranked[(len(ranked) - 1) // 2] if ranked else None


def since(trial: Trial) -> str:
    """What the times on an axis of this trial count from, in words."""
    return f"the start of the {trial.subject}" if trial.started_in_measure else "the start of the measurement"


def trial_name(trial: Trial) -> str:
    """The name of a trial, in the column ``trial`` of a mark: other views of a chart lead from it to the trial."""
    return f"{trial.record.spec.variant.id}/{trial.record.spec.repeat}"


def elapsed_s(trial: Trial) -> float | None:
    """From the zero of its times to the end of `measure`: where a trial without a result ended."""
    start = trial.zero_ns
    if start is None or trial.measure is None:
        return None
    return (trial.measure.end.monotonic_ns - start) / 1e9
