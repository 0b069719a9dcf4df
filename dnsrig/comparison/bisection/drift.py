"""What drifts from round to round, as the trials of both ends tell it.

The drift of a round is the median of what both ends deviated from their own medians in that round and in `WINDOW`
rounds before and after it. A trial of an end is freed of drift without looking at itself, as those of other commits
are.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dnsrig.comparison.bisection.state import GOOD

WINDOW = 3
"""Rounds. Fewer would follow a faster drift, but what chance did in them is common to all trials near them, which then
seem to say more than they do: a median of fourteen trials leaves a third of the spread of one."""

Trials = Mapping[int, float | None]


@dataclass(frozen=True)
class Ends:
    """The trials of both ends, freed of drift, and the drift of each round."""

    good: tuple[float, ...]
    bad: tuple[float, ...]
    drift: tuple[float, ...]


def freed(rounds: Sequence[Trials], last: int) -> Ends:
    """Each end must have a trial."""
    levels = {end: statistics.median([v for r in rounds if (v := r.get(end)) is not None]) for end in (GOOD, last)}
    deviations = [{end: v - level for end, level in levels.items() if (v := r.get(end)) is not None} for r in rounds]
    ends: dict[int, list[float]] = {GOOD: [], last: []}
    drift = []
    for number, own in enumerate(deviations):
        near = deviations[max(0, number - WINDOW) : number + WINDOW + 1]
        around = sorted(value for each in near for value in each.values())
        drift.append(_median(around))
        for end, deviation in own.items():
            without = list(around)
            without.remove(deviation)
            ends[end].append(levels[end] + deviation - _median(without))
    return Ends(tuple(ends[GOOD]), tuple(ends[last]), tuple(drift))


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    if not ordered:
        return 0.0
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
