"""Which test compares repeats, and the least p that it can give: from the numbers of repeats and comparisons alone,
before any result.

The choice was made by simulation (docs/explanation/measuring.md, `benches/rounds_or_ranks.py`). The test of rounds
keeps its power whatever drifts between rounds, but its least p is 2 to the power 1 - n: with few repeats or many
comparisons no difference could be significant.
"""

from __future__ import annotations

import math

from dnsrig.stats.statistics import ALPHA, FEWEST_REPEATS

FEWEST_ROUNDS = 8
LEAST_P_MAX = ALPHA / 5
"""After correction. Above it, more than a sixth of the power is lost on a machine without drift."""
MOST_REPEATS = 1000
"""What `dnsrig run --repeats` takes."""


def by_rounds(rounds: int, comparisons: int) -> bool:
    """Whether repeats of one run are compared round by round; else all of the one with all of the other."""
    return rounds >= FEWEST_ROUNDS and comparisons * 2.0 ** (1 - rounds) <= LEAST_P_MAX


def least_p(ours: int, theirs: int, comparisons: int, *, one_run: bool = True, machines: int = 1) -> float:
    """The smallest p after Holm's correction that so many repeats can give. ``one_run``: they have rounds in common.
    ``machines``: over how many these are spread, whose repeats are compared within each."""
    if one_run and ours == theirs and by_rounds(ours, comparisons):
        return comparisons * 2.0 ** (1 - ours)
    sizes = [(len(range(place, ours, machines)), len(range(place, theirs, machines))) for place in range(machines)]
    return min(1.0, comparisons * 2 / math.prod(math.comb(mine + other, mine) for mine, other in sizes))


def repeats_needed(comparisons: int, *, one_run: bool = True, machines: int = 1) -> int:
    """The fewest repeats of each with which a difference can be significant at all."""
    numbers = (n for n in range(FEWEST_REPEATS, MOST_REPEATS) if n % machines == 0)
    enough = (n for n in numbers if least_p(n, n, comparisons, one_run=one_run, machines=machines) < ALPHA)
    return next(enough, MOST_REPEATS)


def reach(ours: int, theirs: int, comparisons: int, *, one_run: bool = True, machines: int = 1) -> str:
    """A sentence: the least p, and the repeats that are needed if no difference could ever be significant."""
    many = f"{ours} repeats" if ours == theirs else f"{ours} and {theirs} repeats"
    over = f" over {machines} machines" if machines > 1 else ""
    least = least_p(ours, theirs, comparisons, one_run=one_run, machines=machines)
    said = f"with {many}{over} and {comparisons} comparison{'s' * (comparisons != 1)} the least p is {least:.2g}"
    if can_tell(ours, theirs, comparisons, one_run=one_run, machines=machines):
        return said
    needed = repeats_needed(comparisons, one_run=one_run, machines=machines)
    return f"{said}: no difference can be told from chance; at least {needed} repeats are needed"


def can_tell(ours: int, theirs: int, comparisons: int, *, one_run: bool = True, machines: int = 1) -> bool:
    """Whether any difference could be significant."""
    enough = min(ours, theirs) >= FEWEST_REPEATS
    return enough and least_p(ours, theirs, comparisons, one_run=one_run, machines=machines) < ALPHA
