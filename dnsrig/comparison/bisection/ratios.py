"""A commit beside an end of the search, by the rounds that measured both: what drifts from round to round is not in
it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from dnsrig.comparison.bisection.state import State, Value
from dnsrig.stats.rounds import typical_ratio


@dataclass(frozen=True)
class Ratio:
    """Of the commit's value to the end's."""

    typical: float
    low: float
    high: float
    rounds: int
    is_interval: bool
    """Whether ``low`` and ``high`` are the 95 % interval of `rounds.typical_ratio`; with fewer rounds they are the
    range, and ``typical`` is the median."""


def ratio(state: State, commit: int, end: int) -> Ratio | None:
    """None where no round has both above zero."""
    both = [(_above_zero(trials.get(commit)), _above_zero(trials.get(end))) for trials in state.rounds]
    pairs = [(ours, theirs) for ours, theirs in both if ours is not None and theirs is not None]
    if (typical := typical_ratio(pairs)) is not None:
        return Ratio(typical[0], typical[1].low, typical[1].high, len(pairs), is_interval=True)
    if not pairs:
        return None
    ratios = [ours / theirs for ours, theirs in pairs]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios), len(pairs), is_interval=False)


def _above_zero(value: Value) -> float | None:
    return value if isinstance(value, int | float) and value > 0 else None
