"""With more zones, each zone takes longer: the time stops growing in proportion.

Whatever a start costs by itself, twice the zones take at most twice the time; and so the time per zone, all included,
may fall as the number of zones grows, but never rise. Where it rises, something other than the work has begun to
decide, and a figure measured with few zones says nothing of many. The other traps that found something there, and not
before, are named as the reason.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig import traps
from dnsrig.analysis.read import Run, Trial
from dnsrig.analysis.summary import describe, main_metric
from dnsrig.rundir import Scalar, Variant
from dnsrig.text import digits
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 60
TITLE = "the time does not grow in proportion to the zones"
SOURCE = "S1: P. Spacek, 1 to 100 thousand zones: do not assume linear behaviour (2024)"
WEIGHT = "explains"
LARGEST_RATIO = 1.25
"""Cheapest repeat here to dearest repeat there, per zone. No linear law reaches it while repeats are within 11 % of it:
1.11 / 0.89 is less."""
SMALLEST_EXCESS_S = 0.5
"""Beyond what proportion allows: the start of a server may differ by less by chance."""
FEWEST_REPEATS = 3
"""Of each size: with fewer there is no spread to hold a difference against."""


@dataclass(frozen=True)
class Size:
    """What was measured of one number of zones."""

    variant: str
    zones: int
    trials: list[Trial]
    times_s: list[float]
    """Of repeats at their limit, for how long they were watched: they took longer."""
    censored: bool

    @property
    def per_zone_s(self) -> tuple[float, float]:
        """Of the cheapest and of the dearest repeat."""
        return min(self.times_s) / self.zones, max(self.times_s) / self.zones


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """One conclusion a row of sizes: of the size at which it stops being linear, or else of the largest that was run.

    Nothing of a run whose question is not how long something takes.
    """
    if describe(main_metric(run)).unit != "s":
        return
    for row in _rows(run):
        sizes = sorted((_size(run, variant) for variant in row if run.of_variant(variant.id)), key=lambda s: s.zones)
        measured = [size for size in sizes if len(size.times_s) >= FEWEST_REPEATS]
        if pair := first_rise(measured):
            yield pair[1].variant, _found(*pair)
        elif sizes:
            yield sizes[-1].variant, _not_found(sizes[-1], measured)


def first_rise(sizes: list[Size]) -> tuple[Size, Size] | None:
    """The first size at which a zone costs more than at a smaller one, that one first. ``sizes``: the smallest
    first."""
    for number, size in enumerate(sizes):
        # What came to its limit costs at least so much: nothing can be held against it.
        smaller = [other for other in sizes[:number] if not other.censored]
        if not smaller:
            continue
        cheapest = min(smaller, key=lambda other: other.per_zone_s[1])
        fastest_s, allowed_s = min(size.times_s), cheapest.per_zone_s[1] * size.zones
        if fastest_s > LARGEST_RATIO * allowed_s and fastest_s - allowed_s > SMALLEST_EXCESS_S:
            return cheapest, size
    return None


def _not_found(largest: Size, measured: list[Size]) -> Conclusion:
    """Clear where the largest size could be held against a smaller one."""
    if largest not in measured:
        why = f"Fewer than {FEWEST_REPEATS} repeats with {largest.zones:,} zones finished or came to their limit."
        return cannot_tell(why)
    if all(size.censored for size in measured[:-1]):
        return cannot_tell(f"No smaller size has {FEWEST_REPEATS} repeats that all finished, to hold this one against.")
    return CLEAR


def _rows(run: Run) -> Iterator[list[Variant]]:
    """The variants that differ only in their number of zones, where there are two numbers or more."""
    zones = {variant.id: run.manifest.specs[variant.id].dataset.zones for variant in run.manifest.variants}
    axes = [a for a in run.manifest.axes if all(v.parameters[a] == zones[v.id] for v in run.manifest.variants)]
    rows: dict[tuple[Scalar, ...], list[Variant]] = {}
    for variant in run.manifest.variants:
        rest = tuple(value for axis, value in variant.parameters.items() if axis not in axes)
        rows.setdefault(rest, []).append(variant)
    yield from (row for row in rows.values() if len(row) > 1)


def _size(run: Run, variant: Variant) -> Size:
    trials = [trial for trial in run.of_variant(variant.id) if trial.record.outcome in ("done", "timeout")]
    times = [(trial, trial.time_s if trial.record.outcome == "done" else _watched_s(trial)) for trial in trials]
    return Size(
        variant=variant.id,
        zones=max(1, run.manifest.specs[variant.id].dataset.zones),
        trials=trials,
        times_s=[time_s for _, time_s in times if time_s is not None],
        censored=any(trial.record.outcome == "timeout" for trial in trials),
    )


def _watched_s(trial: Trial) -> float | None:
    """For how long a trial that came to its limit was watched, from where the time of the result begins."""
    if trial.measure is None or trial.zero_ns is None:
        return None
    return (trial.measure.end.monotonic_ns - trial.zero_ns) / 1e9


def _found(before: Size, here: Size) -> Conclusion:
    reasons = _reasons(before, here)
    ms_before, ms_here = (1e3 * statistics.median(size.times_s) / size.zones for size in (before, here))
    predicted_s, measured_s = ms_before * here.zones / 1e3, statistics.median(here.times_s)
    at_least = "at least " if here.censored else ""
    why = f" At this size found as well: {', '.join(reasons)}." if reasons else " No other trap knows why."
    return Conclusion(
        "found",
        summary=f"{here.zones:,} zones took {at_least}{digits(measured_s)} s (median of {len(here.times_s)}), {digits(ms_here)} ms a zone; "
        f"with {before.zones:,} zones it was {digits(ms_before)} ms, so {digits(predicted_s)} s were to be expected.{why}",
        evidence={
            "zones": here.zones,
            "predicted_s": round(predicted_s, 3),
            "measured_s": round(measured_s, 3),
            "at_limit": here.censored,
            "ms_per_zone_before": round(ms_before, 4),
            "ms_per_zone_here": round(ms_here, 4),
            "zones_before": before.zones,
            "why": ", ".join(reasons),
        },
        metrics=(here.trials[0].record.spec.main_metric, "time_per_zone_ms", "zones_per_s"),
        remedy="Measure with as many zones as production has, and mend what the traps named here say.",
    )


def _reasons(before: Size, here: Size) -> list[str]:
    """The traps that found something in most repeats here, and not in most of the smaller size."""
    return [trap for trap in _common(here) if trap not in _common(before)]


def _common(size: Size) -> list[str]:
    counted = Counter(
        trap.id
        for trap in traps.all_traps().values()
        for trial in size.trials
        if (conclusion := trap.after(trial)) is not None and conclusion.verdict == "found"
    )
    return [trap for trap, count in counted.items() if 2 * count > len(size.trials)]
