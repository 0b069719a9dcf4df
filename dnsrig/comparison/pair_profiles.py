"""What ran in two versions of a server: the stacks of all their repeats, whole and within stalls.

Profiles are held against each other by shares: each count is divided by all samples of its own profile, as
`difffolded.pl -n` does (B. Gregg, Differential Flame Graphs, 2014). Nothing is paired, because a profile of one trial
has few samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dnsrig.comparison.pairs import VersionPair
from dnsrig.runs.profile import Difference, differences
from dnsrig.runs.run import Run
from dnsrig.runs.stalls import stacks_of, stalls_of
from dnsrig.runs.trial import Trial

FEWEST_STACKS = 100
"""Samples of either side: among fewer, a share of a tenth is known to a twentieth."""
STANDARD_ERRORS = 3
"""A difference of shares that is larger is not what sampling brings about. Trials differ as well; so do functions, of
which there are hundreds."""
WHOLE, IN_STALLS, OTHERWISE = "whole", "in stalls", "all of it"


@dataclass(frozen=True)
class Profiles:
    """Stacks of both versions, and which part of the time they are of."""

    base: Counter[str]
    new: Counter[str]
    base_part: str = WHOLE
    new_part: str = WHOLE

    @property
    def functions(self) -> list[Difference]:
        """Functions whose own share differs by more than sampling brings about, the largest difference first."""
        told = [
            each
            for each in differences(self.new, self.base)
            if is_told(each.share, each.other_share, each.samples, each.other_samples)
        ]
        return sorted(told, key=lambda each: -abs(each.share - each.other_share))


def is_told(share: float, other: float, samples: int, others: int) -> bool:
    """Whether two shares, 0..1, of so many samples differ by more than `STANDARD_ERRORS`.

    >>> is_told(0.3, 0.2, 1000, 1000), is_told(0.3, 0.2, 100, 100)
    (True, False)
    """
    together = (share * samples + other * others) / (samples + others)
    error = math.sqrt(together * (1 - together) * (1 / samples + 1 / others))
    return abs(share - other) > STANDARD_ERRORS * error


def profiles(run: Run, pair: VersionPair) -> Iterator[Profiles]:
    """The whole, and the stalls where either version has any: what ran in its stalls against what ran in the other's,
    or in all of the other where that has too few. Nothing where there are too few stacks."""
    base, new = run.done(pair.base.id), run.done(pair.new.id)
    yield from _enough(Profiles(_pooled(base), _pooled(new)))
    stalled = [_in_stalls(trials) for trials in (base, new)]
    if any(found.total() >= FEWEST_STACKS for found in stalled):
        sides = [
            (found, IN_STALLS) if found.total() >= FEWEST_STACKS else (_pooled(trials), OTHERWISE)
            for found, trials in zip(stalled, (base, new), strict=True)
        ]
        yield from _enough(Profiles(sides[0][0], sides[1][0], sides[0][1], sides[1][1]))


def _enough(found: Profiles) -> list[Profiles]:
    return [found] if min(found.base.total(), found.new.total()) >= FEWEST_STACKS else []


def _pooled(trials: Sequence[Trial]) -> Counter[str]:
    found = Counter[str]()
    for trial in trials:
        found.update(trial.stacks)
    return found


def _in_stalls(trials: Sequence[Trial]) -> Counter[str]:
    found = Counter[str]()
    for trial in trials:
        stalls = stalls_of(trial)
        if stalls is not None and stalls.found:
            found += stacks_of(trial, stalls)[0]
    return found
