"""The output of `dnsrig bisect`: progress, and the answer for a terminal and for scripts. The report has the same
sentences (`report.bisection`)."""

from __future__ import annotations

import math
from typing import Any

from dnsrig.cli._progress import LiveProgress, PlainProgress
from dnsrig.comparison.bisection.record import Search
from dnsrig.comparison.bisection.search import Answer, Measure
from dnsrig.comparison.bisection.state import GOOD, State
from dnsrig.report.bisection import asked, percent
from dnsrig.report.fitting import FittingTable
from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial
from dnsrig.text import visible

ROUNDS_OF_ENDS = 6
ROUNDS_A_STEP = 2
ROUNDS_AFTERWARDS = 3
"""Rounds that simulated histories needed when the ends differed clearly: docs/results/bisect.md."""


def steps(candidates: int) -> int:
    """Number of commits that are measured between the ends if none has to be skipped."""
    return max(0, math.ceil(math.log2(candidates - 1)))


def trials(candidates: int) -> int:
    """Approximate number of trials if the ends differ clearly."""
    return 2 * ROUNDS_OF_ENDS + 3 * ROUNDS_A_STEP * steps(candidates) + 4 * ROUNDS_AFTERWARDS


def describe_step(search: Search, state: State, wanted: Measure) -> str:
    names = [visible(search.candidates[position].name) for position in wanted.commits[1:-1]]
    what = f"{' and '.join(names)}: {wanted.why}" if names else wanted.why
    if not names and (so_far := percent(state, state.bad, GOOD)):
        what += f" So far the bad one is {so_far} of the good one; the criterion is {search.criterion}"
    return f"round {len(state.rounds) + 1}: {what}"


def table(search: Search, state: State) -> FittingTable:
    """The result of each candidate that was measured."""
    return FittingTable(
        title=f"{search.criterion.metric} of the measured candidates",
        columns=["", "candidate", "rounds", "median", "of good end", "is like", "wrong with"],
        axes=2,
        rows=[
            [
                *(str(each.position), visible(each.candidate.name), str(each.rounds)),
                *(each.median, each.of_good, each.is_like, each.wrong),
            ]
            for each in asked(search, state)
        ],
    )


def as_json(search: Search, found: Answer, state: State) -> dict[str, Any]:
    """The answer and its evidence, for scripts."""

    def named(position: int) -> dict[str, Any]:
        return {"position": position, **search.candidates[position].model_dump()}

    several = found.kind in ("commit", "range")
    return {
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


class Watch:
    """Adds the steps of a search to the progress of its trials."""

    def __init__(self, trials: LiveProgress | PlainProgress) -> None:
        self._trials = trials

    def step(self, search: Search, state: State, step: Measure) -> None:
        self.note(describe_step(search, state, step))

    def note(self, text: str) -> None:
        self._trials.note(text)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._trials.trial_started(number, total, spec)

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
        self._trials.trial_event(spec, event)

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        self._trials.trial_ended(spec, trial, reason)
