"""With more zones, each zone takes longer: the time no longer grows in proportion.

Whatever a start costs by itself, twice the zones take at most twice the time. So the time per zone, including all
costs, may fall as the number of zones grows, but never rise. If it rises, something else limits the result, and a
figure measured with few zones does not hold for many. As the reason the finding names the other traps that are found at
this size, but not at smaller ones.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig import traps
from dnsrig.comparison.summary import describe, main_metric
from dnsrig.rundir import Scalar, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell, watched_s

ORDER = 60
GROUP = "statistics"
TITLE = "the time grows faster than the number of zones"
SOURCE = "S1: P. Spacek, 1 to 100 thousand zones: do not assume linear behaviour (2024)"
WEIGHT = "explains"
LARGEST_RATIO = 1.25
"""Ratio of the fastest repeat here to the slowest repeat of a smaller size, for each zone. No linear law reaches it
while repeats are within 11 % of it: 1.11 / 0.89 is less."""
SMALLEST_EXCESS_S = 0.5
"""Least excess over proportional growth: the start of a server may vary by less."""
FEWEST_REPEATS = 3
"""Least number of repeats of each size: with fewer, there is no spread to compare a difference with."""


@dataclass(frozen=True)
class Size:
    """The measurements with one number of zones."""

    variant: str
    zones: int
    trials: list[Trial]
    times_s: list[float]
    """Times of the repeats; for repeats that reached their limit, the time until then: they took longer."""
    censored: bool

    @property
    def per_zone_s(self) -> tuple[float, float]:
        """Time for each zone in the fastest and in the slowest repeat."""
        return min(self.times_s) / self.zones, max(self.times_s) / self.zones


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """One conclusion for each row of sizes: about the size at which growth stops being linear, or else about the
    largest.

    There are no conclusions if the main metric of the run is not a time.
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
    """The first size at which a zone takes longer than at a smaller one; the smaller one comes first. ``sizes``: the
    smallest first."""
    for number, size in enumerate(sizes):
        # Sizes that reached their limit took at least that long: nothing can be compared with them.
        smaller = [other for other in sizes[:number] if not other.censored]
        if not smaller:
            continue
        cheapest = min(smaller, key=lambda other: other.per_zone_s[1])
        fastest_s, allowed_s = min(size.times_s), cheapest.per_zone_s[1] * size.zones
        if fastest_s > LARGEST_RATIO * allowed_s and fastest_s - allowed_s > SMALLEST_EXCESS_S:
            return cheapest, size
    return None


def _not_found(largest: Size, measured: list[Size]) -> Conclusion:
    """Clear if the largest size could be compared with a smaller one."""
    if largest not in measured:
        why = f"Fewer than {FEWEST_REPEATS} repeats with {largest.zones:,} zones finished or reached their limit."
        return cannot_tell(why)
    if all(size.censored for size in measured[:-1]):
        return cannot_tell(f"No smaller size has {FEWEST_REPEATS} repeats that all finished, to compare this one with.")
    return CLEAR


def _rows(run: Run) -> Iterator[list[Variant]]:
    """The variants that differ only in their number of zones, if there are two numbers or more."""
    zones = {variant.id: run.manifest.specs[variant.id].dataset.zones for variant in run.manifest.variants}
    axes = [a for a in run.manifest.axes if all(v.parameters[a] == zones[v.id] for v in run.manifest.variants)]
    rows: dict[tuple[Scalar, ...], list[Variant]] = {}
    for variant in run.manifest.variants:
        rest = tuple(value for axis, value in variant.parameters.items() if axis not in axes)
        rows.setdefault(rest, []).append(variant)
    yield from (row for row in rows.values() if len(row) > 1)


def _size(run: Run, variant: Variant) -> Size:
    trials = [trial for trial in run.of_variant(variant.id) if trial.record.outcome in COMPARED]
    times = [(trial, trial.time_s if trial.record.outcome == "done" else watched_s(trial)) for trial in trials]
    return Size(
        variant=variant.id,
        zones=max(1, run.manifest.specs[variant.id].dataset.zones),
        trials=trials,
        times_s=[time_s for _, time_s in times if time_s is not None],
        censored=any(trial.record.outcome == "timeout" for trial in trials),
    )


def _found(before: Size, here: Size) -> Conclusion:
    reasons = _reasons(before, here)
    ms_before, ms_here = (1e3 * statistics.median(size.times_s) / size.zones for size in (before, here))
    predicted_s, measured_s = ms_before * here.zones / 1e3, statistics.median(here.times_s)
    at_least = "at least " if here.censored else ""
    why = f" Other traps found at this size: {', '.join(reasons)}." if reasons else " No other trap shows a reason."
    return Conclusion(
        "found",
        summary=f"{here.zones:,} zones took {at_least}{digits(measured_s)} s (median of {len(here.times_s)}), {digits(ms_here)} ms for each zone. "
        f"With {before.zones:,} zones it was {digits(ms_before)} ms, so {digits(predicted_s)} s were expected.{why}",
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
        remedy="Measure with as many zones as production has, and fix the problems that the traps named here report.",
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
