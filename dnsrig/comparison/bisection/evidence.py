"""How much the trials of a commit say that it is like the bad end rather than like the good one.

Each trial is freed of drift (`drift`), and sorted into one of a few bins that the trials of both ends set (`bins`).
Under the hypothesis that the commit is like an end, its trials fall into the bins as that end's did: with the
predictive distribution of Laplace's rule of succession, one pseudo-observation a bin (the Dirichlet-multinomial
distribution). So a single trial never says more than the number of trials of the ends allows, whatever their
distribution is: heavy-tailed, of two modes, or without any spread. The logarithm of the ratio of both probabilities is
the statistic of Wald's sequential probability ratio test (Sequential tests of statistical hypotheses, 1945).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dnsrig.comparison.bisection import drift
from dnsrig.comparison.bisection.bins import edges
from dnsrig.comparison.bisection.posterior import log_likelihood
from dnsrig.comparison.bisection.scale import scale
from dnsrig.comparison.bisection.state import GOOD, State

DECIDED = math.log(19)
"""Wald's bound for an error of 5 % a commit. Later trials may overturn it: the answer has a bound of its own."""

Verdict = Literal["good", "bad", "neither", "open"]
Counts = tuple[int, ...]
"""Trials in each bin."""


@dataclass(frozen=True)
class Evidence:
    """Of one commit. ``log_ratio``: of the probabilities of its trials as the bad end's and as the good end's."""

    counts: Counts
    rounds: int
    """In which it was measured, also those that allowed no statement."""
    log_ratio: float
    verdict: Verdict


@dataclass(frozen=True)
class Known:
    """What all trials say."""

    good: Counts
    """The trials of the good end by bin."""
    bad: Counts
    commits: dict[int, Evidence]
    """Every commit between the ends that was measured, in order."""

    def counts(self, *verdicts: Verdict) -> dict[int, Counts]:
        """The trials by bin of commits with one of ``verdicts``, in order."""
        return {commit: e.counts for commit, e in self.commits.items() if e.verdict in verdicts}


def evidence(state: State) -> Known:
    """Of all trials. Each end must have some."""
    rounds = _numbers(state)
    ends = drift.freed(rounds, state.bad)
    borders = edges(ends.good, ends.bad)
    good, bad = _counts(ends.good, borders), _counts(ends.bad, borders)
    values: dict[int, list[float]] = {}
    measured: Counter[int] = Counter()
    for trials, drifted in zip(rounds, ends.drift):
        for commit in set(trials) - {GOOD, state.bad}:
            measured[commit] += 1
            value = trials[commit]
            values.setdefault(commit, []).extend([] if value is None else [value - drifted])
    found = {c: _judge(_counts(values[c], borders), good, bad, measured[c]) for c in sorted(values)}
    return Known(good, bad, found)


def _judge(counts: Counts, good: Counts, bad: Counts, rounds: int) -> Evidence:
    as_good, as_bad = _after(counts, good), _after(counts, bad)
    neither = log_likelihood(counts) - max(as_good, as_bad) >= DECIDED
    ratio = as_bad - as_good
    verdict: Verdict = "neither" if neither else "open" if abs(ratio) < DECIDED else "bad" if ratio > 0 else "good"
    return Evidence(counts, rounds, ratio, verdict)


def _after(counts: Counts, seen: Counts) -> float:
    """The logarithm of the probability of ``counts`` after ``seen`` of the same kind."""
    return log_likelihood([c + s for c, s in zip(counts, seen)]) - log_likelihood(seen)


def _counts(values: Sequence[float], borders: Sequence[float]) -> Counts:
    found = [0] * (len(borders) + 1)
    for value in values:
        found[bisect_left(borders, value)] += 1
    return tuple(found)


def _numbers(state: State) -> list[dict[int, float | None]]:
    """On the scale; what did not finish lies beyond all that did, by as much as these differ."""
    found = scale(state.rounds, state.criterion)
    numbers = [{commit: found.of(value) for commit, value in trials.items()} for trials in state.rounds]
    finite = [v for trials in numbers for v in trials.values() if v is not None and math.isfinite(v)]
    beyond = max(finite) + max(1.0, max(finite) - min(finite)) if finite else 0.0
    return [{c: beyond if v is not None and math.isinf(v) else v for c, v in trials.items()} for trials in numbers]
