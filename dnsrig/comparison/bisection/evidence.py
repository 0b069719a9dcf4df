"""How much the trials of a commit say that it is like the bad end rather than like the good one.

Each trial is freed of drift (`freed`), and sorted into one of a few bins that the trials of both ends set (`edges`).
Under the hypothesis that the commit is like an end, its trials fall into the bins as that end's did: with the
predictive distribution of Laplace's rule of succession, one pseudo-observation a bin (the Dirichlet-multinomial
distribution). So a single trial never says more than the number of trials of the ends allows, whatever their
distribution is: heavy-tailed, of two modes, or without any spread. The logarithm of the ratio of both probabilities is
the statistic of Wald's sequential probability ratio test (Sequential tests of statistical hypotheses, 1945).
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dnsrig.comparison.bisection.posterior import log_likelihood
from dnsrig.comparison.bisection.state import GOOD, State, scale
from dnsrig.stats.statistics import outlying

DECIDED = math.log(19)
"""Wald's bound for an error of 5 % a commit. Later trials may overturn it: the answer has a bound of its own."""

Verdict = Literal["good", "bad", "neither", "open"]
Counts = tuple[int, ...]
"""Trials in each bin."""


@dataclass(frozen=True)
class Evidence:
    """Evidence of one commit. ``log_ratio``: of the probabilities of its trials as the bad end's and as the good
    end's."""

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
    """Evidence of all trials. Each end must have some."""
    rounds = _numbers(state)
    ends = freed(rounds, state.bad)
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


# Bins: below the good end, like it, between both, like the bad end, beyond it. Trials beyond or between the ends count
# for neither end, unless the ends have such trials themselves. So outliers, which both ends have, mislead nobody, and a
# commit that is like neither end shows. If the ends overlap, quarters of their trials replace the three bins in the
# middle. The bins are not chosen to separate the ends best: that would overrate what a few trials show.

GAP_SHARE = 0.25
"""Share of the gap between both ends that still belongs to the end, on either side."""
MARGIN_SHARE = 0.5
"""How far beyond an end's trials another one still resembles them: a share of the distance of both medians."""


def edges(good: Sequence[float], bad: Sequence[float]) -> list[float]:
    """The upper edges of all bins but the last, which they include; bad values are larger."""
    typical_good, typical_bad = _typical(good), _typical(bad)
    both = [*typical_good, *typical_bad]
    margin = MARGIN_SHARE * abs(statistics.median(bad) - statistics.median(good))
    low, high = max(typical_good), min(typical_bad)
    share = GAP_SHARE * (high - low)
    between = [low + share, high - share] if low < high else statistics.quantiles(both, n=4, method="inclusive")
    return [min(both) - margin, *between, max(both) + margin]


def _typical(values: Sequence[float]) -> list[float]:
    """Without outliers: these have no bin made for them."""
    odd = set(outlying(values))
    return [value for index, value in enumerate(values) if index not in odd]


# Drift: the drift of a round is the median of the deviations of both ends from their own medians, in that round and in
# `WINDOW` rounds before and after it. The drift of a trial of an end is taken without the trial itself, as for trials
# of other commits.

WINDOW = 3
"""Rounds. Fewer would follow a faster drift, but what chance did in them is common to all trials near them, which then
seem to say more than they do: a median of fourteen trials leaves a third of the spread of one."""

Deviations = Mapping[int, float | None]


@dataclass(frozen=True)
class FreedEnds:
    """The trials of both ends, freed of drift, and the drift of each round."""

    good: tuple[float, ...]
    bad: tuple[float, ...]
    drift: tuple[float, ...]


def freed(rounds: Sequence[Deviations], last: int) -> FreedEnds:
    """Each end must have a trial."""
    levels = {end: statistics.median([v for r in rounds if (v := r.get(end)) is not None]) for end in (GOOD, last)}
    deviations = [{end: v - level for end, level in levels.items() if (v := r.get(end)) is not None} for r in rounds]
    ends: dict[int, list[float]] = {GOOD: [], last: []}
    drift = []
    for number, own in enumerate(deviations):
        near = deviations[max(0, number - WINDOW) : number + WINDOW + 1]
        around = sorted(value for each in near for value in each.values())
        drift.append(_middle(around))
        for end, deviation in own.items():
            without = list(around)
            without.remove(deviation)
            ends[end].append(levels[end] + deviation - _middle(without))
    return FreedEnds(tuple(ends[GOOD]), tuple(ends[last]), tuple(drift))


def _middle(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    if not ordered:
        return 0.0
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
