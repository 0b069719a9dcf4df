"""No false alarm: each built-in experiment has clean variants, on which no trap finds anything."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from datetime import date
from fractions import Fraction

import others
import pytest
from clean import CLEAN, MAY_BE_UNSURE, TRUE_HERE, TRUE_OF
from conftest import share_of_others
from suites import turns

from dnsrig.experiment import model
from dnsrig.runs import during
from dnsrig.runs.stalls import stalls_of
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

ATTEMPTS = 4
"""At a trial that can be judged."""

MORE = 3
"""Trials after one in which a trap found something."""

A_DAY = 1
"""Number of variants in `make test`; `make test-full` has all."""


def test_every_experiment_has_a_clean_variant() -> None:
    assert {experiment for experiment, _ in CLEAN} == set(model.builtin())


def test_every_variant_has_its_turn() -> None:
    days = -(-len(CLEAN) // A_DAY)
    assert set().union(*(turns(len(CLEAN), A_DAY, day) for day in range(days))) == set(range(len(CLEAN)))


TODAY = turns(len(CLEAN), A_DAY, date.today().toordinal())
VARIANTS = [
    pytest.param(experiment, settings, id=f"{experiment}-{number}", marks=[] if number in TODAY else pytest.mark.full)
    for number, (experiment, settings) in enumerate(CLEAN)
]


@pytest.mark.alone
@pytest.mark.parametrize(("experiment", "settings"), VARIANTS)
def test_clean(measure: Callable[..., Trial], experiment: str, settings: tuple[str, ...]) -> None:
    """No trap may find something in more than one of four trials; one clean trial is enough.

    A trap that is wrong in the share p of the trials fails a variant with probability p (1 - (1 - p)³): always if p is
    1, 44 % if p is 1/2, 23 % if p is 1/3. It is wrong in each variant that it judges, so in `make test-full` one with p
    = 1/3 fails at least one of 10 variants with 93 %, and of 20 with 99.5 %. A disturbance that the kernel's accounts
    do not show fails a variant with about 3 d², if it hits the share d of the trials: 0.03 % if d is 1 %.
    """
    trials: list[Trial] = []

    def alarms_of_another() -> dict[str, str]:
        trials.append(judged(measure, experiment, settings))
        return alarms(trials[-1])

    if found := found_again(alarms_of_another):
        others.skip_if_excused(found, min(map(share_of_others, trials)), found)
    assert not found


def found_again(alarms_of_another: Callable[[], dict[str, str]]) -> dict[str, str]:
    """What is found in more than one trial, of `MORE` if the first is not clean: trap -> summary.

    ``alarms_of_another`` measures a trial, and returns what traps find in it.
    """
    found = [alarms_of_another()]
    found += [alarms_of_another() for _ in range(MORE)] if found[0] else []
    times = Counter(trap for each in found for trap in each)
    return {trap: summary for each in found for trap, summary in each.items() if times[trap] > 1}


def test_how_often_a_trap_that_is_wrong_is_noticed() -> None:
    wrong, noticed = Fraction(1, 3), Fraction(0)
    for outcomes in itertools.product((True, False), repeat=1 + MORE):
        alarms_of_each = [{"trap": "found"} if is_wrong else {} for is_wrong in outcomes]
        if found_again(iter(alarms_of_each).__next__):
            noticed += math.prod(wrong if is_wrong else 1 - wrong for is_wrong in outcomes)
    assert noticed == wrong * (1 - (1 - wrong) ** 3)
    assert found_again(iter([{"a": ""}, {"b": ""}, {}, {}]).__next__) == {}, "two traps, once each"


def judged(measure: Callable[..., Trial], experiment: str, settings: tuple[str, ...]) -> Trial:
    """A trial that can be judged: its instrument was in time, and the kernel's accounts show no time in which the
    server answered nobody for lack of a CPU."""
    trials: list[Trial] = []
    for _ in range(ATTEMPTS):
        trials.append(measure(*settings, experiment=experiment))
        if not why_not(trials[-1]):
            return trials[-1]
    reasons = [why_not(trial) for trial in trials]
    others.skip_if_excused((), min(map(share_of_others, trials)), reasons)
    raise AssertionError(reasons)


def why_not(trial: Trial) -> str:
    """Why a trial cannot be judged; empty if it can."""
    if trial.record.outcome == "invalid":
        return trial.record.reason
    stalls = stalls_of(trial) if trial.load.has_latencies else None
    if stalls is None or not stalls.found:
        return ""
    whole = stalls.start_ns, stalls.end_ns
    percent = during.without_cpu_percent(trial, trial.subject, stalls.stretches, whole) or 0.0
    return f"the server had no CPU in {percent:.0f} % of its stalls" if percent >= 50 else ""


def alarms(trial: Trial) -> dict[str, str]:
    """What traps find, wrongly: trap -> summary."""
    assert trial.record.outcome == "done", trial.record.reason
    conclusions = {name: trap.after(trial) for name, trap in all_traps().items()}
    wrong = {
        name: conclusion
        for name, conclusion in conclusions.items()
        if conclusion is not None
        and name not in TRUE_HERE | TRUE_OF.get(trial.record.spec.experiment, set())
        and (conclusion.verdict == "found" or (conclusion.verdict == "cannot-tell" and name not in MAY_BE_UNSURE))
    }
    return {name: f"{conclusion.verdict}: {conclusion.summary}" for name, conclusion in wrong.items()}
