"""What people read of a search: its course round by round, and a commit beside an end.

The course has what each round measured, and where the change can be by all trials until then. A commit is compared with
an end by the rounds that measured both, so that drift from round to round is not in the ratio.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig.comparison.bisection import posterior
from dnsrig.comparison.bisection.difference import difference
from dnsrig.comparison.bisection.evidence import Verdict, evidence
from dnsrig.comparison.bisection.state import GOOD, State, Value
from dnsrig.stats.rounds import typical_ratio


@dataclass(frozen=True)
class Step:
    """One round, and what is known after it."""

    round: int
    measured: dict[int, Verdict]
    """Commits between the ends, and what each was like by then."""
    first: int
    last: int
    """The change is one of these."""
    wrong: float | None
    """But with this probability it is another one; None as long as it is not known whether the ends differ: it can be
    any."""


def course(state: State) -> Iterator[Step]:
    for number in range(1, len(state.rounds) + 1):
        until = state.model_copy(update={"rounds": state.rounds[:number]})
        between = sorted(set(state.rounds[number - 1]) - {GOOD, state.bad})
        if difference(until).verdict != "differ":
            yield Step(number, dict.fromkeys(between, "open"), 1, state.commits, None)
            continue
        known = evidence(until)
        cells = posterior.cells(known.good, known.bad, known.counts("good", "bad", "open"), state.commits)
        found = posterior.credible(cells, state.limits.error)
        verdicts = {commit: known.commits[commit].verdict for commit in between}
        yield Step(number, verdicts, found.first, found.last, 1 - found.probability)


@dataclass(frozen=True)
class Ratio:
    """Ratio of the commit's value to the end's."""

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
