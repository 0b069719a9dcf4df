"""There are too few repeats for the spread, so a difference may be chance.

With fewer than five repeats, intervals and tests mean nothing: the smallest p of an exact rank test of 3 against 3
repeats is 0.1. With more repeats, p is still corrected for the number of comparisons, and must be able to show a
difference at all. And the interval of the median must be narrow enough to show the differences that matter.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace

from dnsrig.comparison.summary import comparisons_planned, describe
from dnsrig.runs.run import Run
from dnsrig.stats import significance
from dnsrig.stats.machines import levelled
from dnsrig.stats.statistics import FEWEST_REPEATS, bootstrap_interval
from dnsrig.text import digits
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 90
OF_IMPORTED = True
GROUP = "statistics"
TITLE = "too few repeats for the spread"
SOURCE = "S1: 30,000 zones took 66 to 181 s over 10 repeats; intervals and tests begin at 5 repeats here"
WIDEST_HALF_WIDTH = 0.10
"""Half the 95 % interval of the median, relative to the median, above which a result is called too wide."""


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    comparisons = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    for variant in run.manifest.variants:
        metric = describe(run.manifest.specs[variant.id].main_metric)
        trials = [trial for trial in run.of_variant(variant.id) if metric.counts(trial)]
        measured = [(trial.result, trial.machine) for trial in trials if trial.result is not None]
        if measured:
            values = [value for value, _ in measured]
            within = levelled(values, [machine for _, machine in measured]) if run.manifest.machines else values
            machines = max(1, len(run.manifest.machines))
            said = judge(values, within, run.manifest.specs[variant.id].main_metric, comparisons, machines)
            yield variant.id, _of_another_tool(said) if run.manifest.is_imported else said
        elif trials:
            yield variant.id, cannot_tell("No repeat has a figure, so there is no spread to judge.")
        elif run.of_variant(variant.id):
            yield variant.id, cannot_tell("No repeat finished, so there is no spread to judge.")


def judge(values: list[float], within: list[float], metric: str, comparisons: int = 0, machines: int = 1) -> Conclusion:
    """``values``: values of ``metric`` in its unit, one for each repeat. ``within``: the same without the differences
    between machines. ``comparisons``: number of comparisons with a baseline in the run. ``machines``: number of
    machines."""
    repeats, unit, ending = len(values), describe(metric).unit, metric.rpartition("_")[2]
    metrics = (metric, "time_per_zone_ms") if unit == "s" else (metric,)
    if repeats < FEWEST_REPEATS:
        return Conclusion(
            "found",
            summary=f"With only {repeats} repeats there is no interval, only a range from {_figure(min(values))} to {_figure(max(values))} {unit}."
            if repeats > 1
            else f"There is only 1 repeat: {_figure(values[0])} {unit}.",
            evidence={
                "repeats": repeats,
                f"lowest_{ending}": round(min(values), 4),
                f"highest_{ending}": round(max(values), 4),
            },
            metrics=metrics,
            remedy=_more(significance.repeats_needed(max(1, comparisons), machines=machines)),
        )
    if comparisons and not significance.can_tell(repeats, repeats, comparisons, machines=machines):
        needed = significance.repeats_needed(comparisons, machines=machines)
        return Conclusion(
            "found",
            summary=f"{significance.reach(repeats, repeats, comparisons, machines=machines)}.".capitalize(),
            evidence={"repeats": repeats, "comparisons": comparisons, "repeats_needed": needed},
            metrics=metrics,
            remedy=f"{_more(needed)} Or compare fewer variants (--set narrows an axis).",
        )
    interval = bootstrap_interval(within)
    if interval is None:
        return cannot_tell("No interval of the median could be computed.")
    low, high = interval.low, interval.high
    middle = statistics.median(within)
    half_width = (high - low) / 2 / middle if middle else 0.0
    if half_width <= WIDEST_HALF_WIDTH:
        return CLEAR
    # Without the differences between machines, values are not measured ones: the width is meaningful, its ends are not.
    ends = {f"low_{ending}": round(low, 4), f"high_{ending}": round(high, 4)} if machines == 1 else {}
    shown = f" ({_figure(low)} to {_figure(high)} {unit})" if ends else " within machines"
    return Conclusion(
        "found",
        summary=f"The 95 % interval of the median of {repeats} repeats is ±{half_width:.0%} wide{shown}.",
        evidence={"repeats": repeats, **ends, "half_width_percent": round(100 * half_width, 1)},
        metrics=metrics,
        remedy="Repeat more often, and see what other traps report about the slow repeats.",
    )


def _of_another_tool(said: Conclusion) -> Conclusion:
    """``said`` with a remedy for imported results, to which dnsrig cannot add repeats."""
    remedy = f"Measure it {FEWEST_REPEATS} times or more, and import all files at once." if said.remedy else ""
    return replace(said, remedy=remedy)


def _more(repeats: int) -> str:
    return f"Take {repeats} repeats or more (10 is the default): `dnsrig run --resume RUN --repeats {repeats}` adds them to a run."


def _figure(value: float) -> str:
    return digits(value)
