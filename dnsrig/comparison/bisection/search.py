"""What to measure next, or the answer: a function of all that is known.

1. The ends are measured until `difference` has decided.
2. Of the commits that are decided, those two neighbours are taken between which the commit most likely lies. Between
   them one is measured, at first the middle one, until it is decided or has had its rounds. One that cannot be measured
   or decided is stepped around. Every round has trials of both ends as well.
3. Where nothing is left between them, both are measured again until the probability that the commit lies elsewhere is
   at most ``limits.error``. If one of them turns out to be decided wrongly, that is step 2 again, elsewhere.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dnsrig.comparison.bisection import posterior
from dnsrig.comparison.bisection.difference import Difference, difference
from dnsrig.comparison.bisection.evidence import Evidence, Known, evidence
from dnsrig.comparison.bisection.state import GOOD, State

Kind = Literal["commit", "range", "undecided", "no-difference"]


@dataclass(frozen=True)
class Measure:
    """One round: a trial of each of ``commits``, in random order."""

    commits: tuple[int, ...]
    why: str


@dataclass(frozen=True)
class Answer:
    """The commit is one of the positions ``first`` to ``last``, but with the probability ``wrong``. Without a
    difference, and undecided, these are all commits."""

    kind: Kind
    first: int
    last: int
    wrong: float
    reason: str
    ends: Difference
    evidence: Mapping[int, Evidence]


def next_step(state: State) -> Measure | Answer:
    """What to measure next, or the answer. The same for the same state."""
    ends = difference(state)
    both = (GOOD, state.bad)
    if len(state.rounds) >= state.limits.rounds and ends.verdict == "open":
        return _nothing("undecided", state, ends, _AT_LIMIT.format(state.limits.rounds))
    if ends.verdict == "open":
        return Measure(both, "do the ends differ?")
    if ends.verdict == "same":
        return _nothing("no-difference", state, ends, f"the bad end does not fulfil {state.criterion}")
    if ends.verdict == "undecided":
        said = f"after {ends.rounds} rounds it is undecided whether the bad end fulfils {state.criterion}"
        return _nothing("undecided", state, ends, said)
    known = evidence(state)
    low, high = _most_likely(known, state.bad)
    found = posterior.cells(known.good, known.bad, known.counts("good", "bad", "open"), state.commits)
    if len(state.rounds) >= state.limits.rounds:
        return _answer(state, ends, known, found, _AT_LIMIT.format(state.limits.rounds))
    if (between := _between(state, known, low, high)) is not None:
        return Measure((GOOD, between, state.bad), "is the change before or after it?")
    if posterior.within(found, low + 1, high) >= 1 - state.limits.error:
        return _answer(state, ends, known, found, "")
    most = 2 * state.limits.rounds_of_commit
    fixed = {*both, *state.unmeasurable}
    again = tuple(c for c in (low, high) if c not in fixed and known.commits[c].rounds < most)
    if again:
        return Measure((GOOD, *again, state.bad), "once more, both sides of the answer")
    return _answer(state, ends, known, found, f"after {most} rounds of both sides it is not surer")


_AT_LIMIT = "the limit of {} rounds is reached"


def _most_likely(known: Known, bad: int) -> tuple[int, int]:
    """Among the decided commits, the two neighbours between which the trials of all of them put the change."""
    decided = known.counts("good", "bad")
    borders = [GOOD, *decided, bad]
    likelihoods = posterior.log_likelihoods(known.good, known.bad, decided)
    best = max(range(len(likelihoods)), key=likelihoods.__getitem__)
    return borders[best], borders[best + 1]


def _between(state: State, known: Known, low: int, high: int) -> int | None:
    """The commit between ``low`` and ``high`` to measure; None where none is left, or enough were stepped around."""
    inside = {commit: e for commit, e in known.commits.items() if low < commit < high}
    unmeasurable = {commit for commit in state.unmeasurable if low < commit < high}
    most = state.limits.rounds_of_commit
    going_on = [c for c, e in inside.items() if e.verdict == "open" and e.rounds < most and c not in unmeasurable]
    if going_on:
        return min(going_on)
    odd = unmeasurable | {c for c, e in inside.items() if e.verdict == "neither"}
    left = [commit for commit in range(low + 1, high) if commit not in inside and commit not in odd]
    if not left or len(odd | set(inside)) >= state.limits.stepped_around:
        return None
    weak = {commit: e.log_ratio for commit, e in inside.items() if e.verdict == "open"}
    return left[_quantile(left, weak, _share(len(odd), f"{state.seed} {low} {high}"))]


SHARES = (1 / 2, 5 / 8, 3 / 8, 3 / 4, 1 / 4, 7 / 8, 1 / 8)
"""What is broken often has broken neighbours: the more of it there is, the further away the next is tried."""


def _share(odd: int, seed: str) -> float:
    return SHARES[odd] if odd < len(SHARES) else random.Random(f"{seed} {odd}").random()


def _quantile(left: Sequence[int], weak: Mapping[int, float], share: float) -> int:
    """The index in ``left`` below which ``share`` of the probability lies, by weak evidence of undecided commits."""
    weights = [math.exp(min(50.0, sum(e for other, e in weak.items() if other >= commit))) for commit in left]
    wanted = share * math.fsum(weights)
    passed = itertools.accumulate(weights)
    return next((index for index, weight in enumerate(passed) if weight > wanted), len(left) - 1)


def _nothing(kind: Kind, state: State, ends: Difference, reason: str) -> Answer:
    return Answer(kind, 1, state.commits, 0.0, reason, ends, {})


def _answer(state: State, ends: Difference, known: Known, found: list[posterior.Cell], reason: str) -> Answer:
    best = posterior.credible(found, state.limits.error)
    kind: Kind = "commit" if best.size == 1 else "undecided" if best.size == state.commits else "range"
    said = reason or ("" if kind == "commit" else _why_several(state, known, range(best.first, best.last)))
    return Answer(kind, best.first, best.last, 1 - best.probability, said, ends, known.commits)


def _why_several(state: State, known: Known, commits: Iterable[int]) -> str:
    """Why the answer is no single commit; ``commits``: those that would part it."""
    inside = set(commits)
    counts = {
        "cannot be measured": len(inside & set(state.unmeasurable)),
        "are like neither end": sum(known.commits[c].verdict == "neither" for c in inside & set(known.commits)),
        "stay undecided": sum(known.commits[c].verdict == "open" for c in inside & set(known.commits)),
    }
    return "between them, " + ", ".join(f"{count} {what}" for what, count in counts.items() if count)
