"""Thresholds that fail a comparison of two runs: ``transfer_time_s > 110 %``, and what the repeats allow to decide.

A rule holds a metric of the new run, in percent of the base run, against a threshold, and describes what is not wanted.
Its verdict on a variant:

- ``regression``: the 95 % interval of the ratio of medians lies wholly beyond the limit, and the rank test, of the new
  repeats against the base's times the limit, rejects at 5 % after Holm's correction over all rules and variants; or
  every repeat of the base finished and some of the new did not; or a rule with ``>`` meets a base that is zero in every
  repeat, of which there is no percentage: then a new median above zero, where the test agrees;
- ``pass``: the interval lies wholly on the good side of the limit;
- ``undecided``: anything else, and always with fewer than five repeats on either side; and what values that are only
  known to be at least so much (a latency beyond the client's timeout) could turn round.

Where figures are known between two ends (a latency, of an instrument that was late by a known amount), the interval
covers both, and the test takes the ends that speak least for a regression. One interval cannot lie wholly on both
sides, so no rule passes what it would fail.

Of runs that share machines, interval and test are of the repeats on the same machine (`machines`). Of two variants of
one run they are of the ratios within its rounds, where it has enough of them (`rounds`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Literal

from dnsrig.comparison import criterion
from dnsrig.comparison.criterion import Criterion
from dnsrig.errors import UsageError
from dnsrig.rundir import Outcome
from dnsrig.stats import machines, rounds, samples, statistics
from dnsrig.stats.samples import Samples
from dnsrig.stats.statistics import ALPHA, FEWEST_REPEATS, Interval
from dnsrig.text import digits

Decision = Literal["pass", "regression", "undecided"]
EXAMPLE = "e.g. --fail-if 'transfer_time_s > 110 %'"
_AT_CEILING = "{count} repeats of the {run} reached the largest value that could be told: the true ones are larger"
_UNFINISHED: tuple[Outcome, ...] = ("timeout", "server-failed")


@dataclass(frozen=True)
class Repeats:
    """The repeats of one variant under one metric: the samples of trials that are done, and all outcomes."""

    samples: Samples
    outcomes: Counter[Outcome]

    @property
    def results(self) -> int:
        """Trials that say something: `done`, or that did not finish."""
        return self.outcomes["done"] + self.unfinished

    @property
    def unfinished(self) -> int:
        return sum(self.outcomes[outcome] for outcome in _UNFINISHED)

    def without_rounds(self) -> Repeats:
        """These repeats, to be compared with another run: no two runs have rounds in common."""
        return replace(self, samples=self.samples.without_rounds())


@dataclass(frozen=True)
class Judgement:
    """The judgement of a rule on one variant, with the reason in one sentence."""

    decision: Decision
    reason: str
    interval: Interval | None = None
    """Interval of the ratio of medians, or of the ratio within rounds, in percent."""
    p: float | None = None
    """The p of the rank test against the limit; None if there is nothing to test."""
    p_corrected: float | None = None


def parse(text: str) -> Criterion:
    """A rule: ``METRIC > N %`` or ``METRIC < N %``, of the base. Raises UsageError."""
    found = criterion.read(text)
    if found is None or not found.relative:
        raise UsageError(f"{text!r} is not a rule: METRIC > N % or METRIC < N %", hint=EXAMPLE)
    if found.limit <= 0:
        raise UsageError(f"{text!r}: a percentage of the base is above zero", hint=EXAMPLE)
    return found


def judge(cases: Sequence[tuple[Criterion, Repeats, Repeats]]) -> list[Judgement]:
    """Each rule on a variant's base and new repeats, with p corrected over all that could be tested, whatever they
    show: one regression among them fails the whole."""
    found = [_first_look(*case, len(cases)) for case in cases]
    tested = [index for index, judgement in enumerate(found) if judgement.p is not None]
    corrected = statistics.holm([p for judgement in found if (p := judgement.p) is not None])
    for index, p in zip(tested, corrected, strict=True):
        rule, base, new = cases[index]
        judgement = replace(found[index], p_corrected=p)
        decided = _by_interval(rule, judgement) if judgement.interval else _from_nothing(judgement, new)
        found[index] = _as_far_as_known(rule, decided, base, new)
    return found


def overall(decisions: Sequence[Decision]) -> Decision:
    """The decision over many: one regression is one; else one undecided leaves all undecided."""
    return next((worst for worst in ("regression", "undecided") if worst in decisions), "pass")


def _first_look(rule: Criterion, base: Repeats, new: Repeats, comparisons: int) -> Judgement:
    """What can be said before p is corrected over all variants: whether there is anything to test. ``comparisons``: of
    how many this is one."""
    if min(base.results, new.results) < FEWEST_REPEATS:
        return _undecided(f"{base.results} and {new.results} repeats: fewer than {FEWEST_REPEATS} decide nothing")
    if base.unfinished:
        return _undecided(f"{base.unfinished} of {base.results} repeats of the base did not finish")
    if new.unfinished:
        return Judgement("regression", f"{new.unfinished} of {new.results} repeats did not finish; all of the base did")
    if min(len(base.samples), len(new.samples)) < FEWEST_REPEATS:
        return _undecided(f"too few repeats have {rule.metric}")
    # Values at a ceiling count as measured here: `_as_far_as_known` withdraws what they do not allow to conclude.
    after, before = new.samples.as_measured(), base.samples.as_measured()
    within_rounds = samples.by_rounds(new.samples, base.samples, comparisons) and min(*after.low, *before.low) > 0
    percent_interval = _interval_of_rounds if within_rounds else partial(_percent_interval, after, before)
    interval = samples.hull(after, before, percent_interval)
    if interval is None and not (rule.above and not any(before.numbers)):
        return _undecided("the base has values of zero, of which nothing is a percentage")
    # Each at the end that is least favourable to a regression.
    ours, theirs = (after.low, before.high) if rule.above else (after.high, before.low)
    limit = [value * rule.limit / 100 for value in theirs]
    if within_rounds:
        logs = [math.log(value / least) for value, least in zip(ours, limit, strict=True)]
        return Judgement("undecided", "", interval, rounds.signed_rank_test(logs))
    strata = samples.strata(ours, limit, after, before)
    return Judgement("undecided", "", interval, statistics.stratified_rank_test(strata))


def _by_interval(rule: Criterion, judgement: Judgement) -> Judgement:
    """On which side of the limit the interval lies; and if beyond, whether that is more than chance would do."""
    interval, p = judgement.interval, judgement.p_corrected
    assert interval is not None and p is not None
    if interval.high <= rule.limit if rule.above else interval.low >= rule.limit:
        return replace(judgement, decision="pass", reason="the interval lies wholly on the good side of the limit")
    if interval.low <= rule.limit if rule.above else interval.high >= rule.limit:
        return replace(judgement, reason="the interval holds the limit: more repeats would narrow it")
    if p < ALPHA:
        return replace(judgement, decision="regression", reason="the interval lies wholly beyond the limit")
    return replace(judgement, reason=f"beyond the limit, but p is {p:.2g} after correction: more repeats would tell")


def _from_nothing(judgement: Judgement, new: Repeats) -> Judgement:
    """Where the base is zero in every repeat: whether the new run is not, and more often than chance would do."""
    p, middle = judgement.p_corrected, median(new.samples.numbers)
    assert p is not None
    if middle <= 0:
        return replace(judgement, reason="zero in every repeat of the base, and not in some of the new")
    if p < ALPHA:
        return replace(judgement, decision="regression", reason=f"from nothing to {digits(middle)}")
    return replace(judgement, reason=f"from nothing to {digits(middle)}, but p is {p:.2g} after correction")


def _as_far_as_known(rule: Criterion, judgement: Judgement, base: Repeats, new: Repeats) -> Judgement:
    """Where values are at least what they say, the true ratio is larger (of the new run) or smaller (of the base): only
    what that cannot turn round stays decided."""
    larger, smaller = ("pass", "regression") if rule.above else ("regression", "pass")
    for decision, repeats, run in ((larger, new, "new run"), (smaller, base, "base")):
        if judgement.decision == decision and (count := len(repeats.samples.bounds)):
            return replace(judgement, decision="undecided", reason=_AT_CEILING.format(count=count, run=run))
    return judgement


def _percent_interval(new: Samples, base: Samples, ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Interval of the ratio of medians, or of the typical ratio within machines, in percent; nothing against nothing is
    100 %. ``ours``, ``theirs``: one end of ``new`` and of ``base``."""
    if not any(ours) and not any(theirs):
        return Interval(100.0, 100.0, 0.95)
    ratio = machines.ratio_interval(samples.strata(ours, theirs, new, base))
    return None if ratio is None else Interval(100 * ratio.low, 100 * ratio.high, ratio.confidence)


def _interval_of_rounds(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """Interval of the typical ratio within a round, in percent."""
    typical = rounds.typical_ratio(list(zip(ours, theirs, strict=True)))
    return None if typical is None else Interval(100 * typical[1].low, 100 * typical[1].high, typical[1].confidence)


def _undecided(reason: str) -> Judgement:
    return Judgement("undecided", reason)
