"""A search for a commit, for people: its answer in words, and the evidence for it, commit by commit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dnsrig.comparison.bisection.course import ratio
from dnsrig.comparison.bisection.difference import difference
from dnsrig.comparison.bisection.evidence import evidence
from dnsrig.comparison.bisection.record import Candidate, Search, search_of, state_of
from dnsrig.comparison.bisection.search import Answer, Measure, next_step
from dnsrig.comparison.bisection.state import GOOD, State
from dnsrig.comparison.summary import describe
from dnsrig.metrics import Metric
from dnsrig.report import figures
from dnsrig.runs.run import Run
from dnsrig.text import digits, visible

SHOWN = 12
"""Candidates of a long list that are shown, at both ends together."""
IS_LIKE = {"good": "good end", "bad": "bad end", "neither": "neither end", "open": "undecided"}
"""Verdict -> its words."""


@dataclass(frozen=True)
class Asked:
    """A commit that was measured. ``wrong``: how probable it is, by its own trials, that it is like the other end."""

    position: int
    candidate: Candidate
    rounds: int
    median: str
    of_good: str
    of_bad: str
    is_like: str
    wrong: str


@dataclass(frozen=True)
class Searched:
    """What a page shows of a search."""

    search: Search
    metric: Metric
    sentences: list[str]
    asked: list[Asked]
    failed: list[tuple[int, Candidate, str]]
    """What could not be measured, and why."""
    rounds: int
    trials: int


def searched(run: Run) -> Searched | None:
    """None where the run is no search."""
    if (search := search_of(run)) is None:
        return None
    state = state_of(run, search)
    step = next_step(state)
    return Searched(
        search=search,
        metric=describe(search.criterion.metric),
        sentences=[f"not finished; next: {step.why}"] if isinstance(step, Measure) else sentences(search, step),
        asked=asked(search, state),
        failed=[(position, search.candidates[position], why) for position, why in sorted(search.failed.items())],
        rounds=len(state.rounds),
        trials=sum(map(len, state.rounds)),
    )


def asked(search: Search, state: State) -> list[Asked]:
    """The measured commits, in the order of the history. A commit is like an end only once the ends differ."""
    known = evidence(state).commits if difference(state).verdict == "differ" else {}
    found = []
    for position in sorted({position for trials in state.rounds for position in trials}):
        own = known.get(position)
        ends = {GOOD: "(good)", state.bad: "(bad)"}
        found.append(
            Asked(
                position=position,
                candidate=search.candidates[position],
                rounds=sum(position in trials for trials in state.rounds),
                median=median(state, position),
                of_good=percent(state, position, GOOD),
                of_bad=percent(state, position, state.bad),
                is_like=ends.get(position) or (IS_LIKE[own.verdict] if own else ""),
                wrong=_probability(_least(own.log_ratio)) if own and own.verdict != "neither" else "",
            )
        )
    return found


def percent(state: State, position: int, end: int) -> str:
    """``198 % [190..205]`` with the interval; ``198 % (190..205)`` with the range of too few rounds;
    ``198 %`` of a single round."""
    found = ratio(state, position, end) if position != end else None
    if found is None:
        return ""
    typical = figures.figure(100 * found.typical, "%")
    if found.rounds == 1:
        return typical
    low, high = (figures.figure(100 * value, "%").removesuffix(" %") for value in (found.low, found.high))
    spread = f"[{low}..{high}]" if found.is_interval else f"({low}..{high})"
    return f"{typical} {spread}"


def _least(log_ratio: float) -> float:
    """The smaller of the two probabilities that have this ratio."""
    return math.exp(-abs(log_ratio)) / (1 + math.exp(-abs(log_ratio)))


def _probability(value: float) -> str:
    """
    >>> _probability(0.0454), _probability(2e-9)
    ('4.5 %', '< 0.01 %')
    """
    return f"{digits(100 * value, 2)} %" if value >= 1e-4 else "< 0.01 %"


def median(state: State, position: int) -> str:
    """The median of one commit's trials, in the metric's unit, and how many did not finish."""
    found = [trials.get(position) for trials in state.rounds if position in trials]
    numbers = [value for value in found if isinstance(value, int | float)]
    unfinished = sum(value == "unfinished" for value in found)
    middle = digits(statistics.median(numbers), 4) if numbers else "none"
    return middle + (f", {unfinished} unfinished" if unfinished else "")


def listing(found: Sequence[Candidate], first: int = 0) -> list[str]:
    """One line a candidate, with its position, from ``first`` on; of many those at both ends."""
    numbered = enumerate(found, start=first)
    lines = [visible(f"  {number:>6}  {each.name}  {each.subject}").rstrip() for number, each in numbered]
    if len(lines) <= SHOWN:
        return lines
    return [*lines[: SHOWN // 2], f"  … {len(lines) - SHOWN:,} more", *lines[-(SHOWN // 2) :]]


def sentences(search: Search, found: Answer) -> list[str]:
    """The sentences that a person reads."""
    between = search.candidates[found.first : found.last + 1]
    if found.kind == "no-difference":
        return [f"no difference: {found.reason} ({_of_ends(found)})"]
    if found.kind == "undecided":
        return [f"undecided: {found.reason}"]
    wrong = (
        f"with {digits(100 * found.wrong, 2)} % it is another one"
        if found.wrong >= 1e-4
        else "another one is all but ruled out"
    )
    if found.kind == "commit":
        return [
            visible(f"{between[0].name}  {between[0].subject}").rstrip(),
            f"the first that is like the bad end; {wrong}",
        ]
    return [f"one of {len(between)} candidates; {wrong}: {found.reason}", *listing(between, found.first)]


def _of_ends(found: Answer) -> str:
    return f"after {found.ends.rounds} rounds of both ends"
