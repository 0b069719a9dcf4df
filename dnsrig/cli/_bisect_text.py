"""What `dnsrig bisect` says: the plan of a search, its steps, its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from dnsrig.analysis.bisection.search import Answer, Measure
from dnsrig.analysis.bisection.state import State
from dnsrig.experiment.bisection.record import Candidate, Search
from dnsrig.report.fitting import FittingTable
from dnsrig.text import visible

SHOWN = 12
"""Candidates of a long list that are shown, at both ends together."""
ROUNDS_OF_ENDS = 6
ROUNDS_A_STEP = 2
ROUNDS_AFTERWARDS = 3
"""As simulated histories took them where the ends differ clearly: docs/explanation/bisect.md."""


def steps(candidates: int) -> int:
    """How many commits are measured between the ends where none has to be stepped around."""
    return max(0, math.ceil(math.log2(candidates - 1)))


def trials(candidates: int) -> int:
    """About so many where the ends differ clearly."""
    return 2 * ROUNDS_OF_ENDS + 3 * ROUNDS_A_STEP * steps(candidates) + 4 * ROUNDS_AFTERWARDS


def listing(found: Sequence[Candidate], first: int = 0) -> list[str]:
    """One line a candidate, with its position, from ``first`` on; of many those at both ends."""
    numbered = enumerate(found, start=first)
    lines = [visible(f"  {number:>6}  {each.name}  {each.subject}").rstrip() for number, each in numbered]
    if len(lines) <= SHOWN:
        return lines
    return [*lines[: SHOWN // 2], f"  … {len(lines) - SHOWN:,} more", *lines[-(SHOWN // 2) :]]


def step(search: Search, state: State, wanted: Measure) -> str:
    names = [visible(search.candidates[position].name) for position in wanted.commits[1:-1]]
    what = f"{' and '.join(names)}: {wanted.why}" if names else wanted.why
    return f"round {len(state.rounds) + 1}: {what}"


def answer(search: Search, found: Answer) -> list[str]:
    """The sentences that a person reads."""
    between = search.candidates[found.first : found.last + 1]
    if found.kind == "no-difference":
        return [f"no difference: {found.reason} ({_of_ends(found)})"]
    if found.kind == "undecided":
        return [f"undecided: {found.reason}"]
    wrong = (
        f"with {100 * found.wrong:.2g} % it is another one"
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


def table(search: Search, found: Answer, state: State) -> FittingTable:
    """What each measured candidate's trials say."""
    rows = []
    for position, e in found.evidence.items():
        odds = math.exp(min(20.0, abs(e.log_ratio)))
        side = {"good": "good end", "bad": "bad end", "neither": "neither end", "open": "undecided"}[e.verdict]
        towards = "" if e.verdict == "neither" else f"{min(odds, 1e6):.3g} : 1 {'bad' if e.log_ratio > 0 else 'good'}"
        values = _values(state, position)
        rows.append([str(position), visible(search.candidates[position].name), str(e.rounds), values, side, towards])
    head = [
        [str(p), visible(search.candidates[p].name), str(len(state.rounds)), _values(state, p), side, ""]
        for p, side in ((0, "(good)"), (state.bad, "(bad)"))
    ]
    return FittingTable(
        title=f"{search.criterion.metric} of what was measured",
        columns=["", "candidate", "rounds", "median", "is like", "odds"],
        axes=2,
        rows=[head[0], *rows, head[1]],
    )


def _values(state: State, position: int) -> str:
    found = [trials.get(position) for trials in state.rounds if position in trials]
    numbers = sorted(value for value in found if isinstance(value, int | float))
    unfinished = sum(value == "unfinished" for value in found)
    middle = f"{numbers[len(numbers) // 2]:.4g}" if numbers else "none"
    return middle + (f", {unfinished} unfinished" if unfinished else "")


def as_json(search: Search, found: Answer, state: State) -> str:
    """All of it, for scripts."""

    def named(position: int) -> dict[str, Any]:
        return {"position": position, **search.candidates[position].model_dump()}

    several = found.kind in ("commit", "range")
    told = {
        "answer": found.kind,
        "candidates": [named(p) for p in range(found.first, found.last + 1)] if several else [],
        "probability_wrong": found.wrong if several else None,
        "reason": found.reason,
        "criterion": str(search.criterion),
        "ends": {"verdict": found.ends.verdict, "rounds": found.ends.rounds, "p": found.ends.p},
        "rounds": len(state.rounds),
        "trials": sum(len(trials) for trials in state.rounds),
        "evidence": [
            {**named(p), "rounds": e.rounds, "is_like": e.verdict, "log_ratio": e.log_ratio, "trials_by_bin": e.counts}
            for p, e in found.evidence.items()
        ],
        "not_measurable": [{**named(p), "why": why} for p, why in sorted(search.failed.items())],
    }
    return json.dumps(told, indent=2)
