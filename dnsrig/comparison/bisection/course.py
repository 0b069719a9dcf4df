"""The course of a search, round by round: what each measured, and where the change can be by all trials until then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig.comparison.bisection import posterior
from dnsrig.comparison.bisection.difference import difference
from dnsrig.comparison.bisection.evidence import Verdict, evidence
from dnsrig.comparison.bisection.state import GOOD, State


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
