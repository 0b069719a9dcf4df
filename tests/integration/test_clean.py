"""No false alarm: each built-in experiment has clean variants, on which no trap finds anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import others
import pytest
from clean import CLEAN, MAY_BE_UNSURE, TRUE_HERE, TRUE_OF
from conftest import share_of_others
from suites import turns

from dnsrig.experiment import model
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

ATTEMPTS = 4
"""At a trial that is valid."""

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
    """This machine may really be disturbed once: after a finding, the next two trials must both be clean."""
    trials = [judged(measure, experiment, settings)]
    if alarms(trials[0]):
        trials = [judged(measure, experiment, settings) for _ in range(2)]
    found = {trap: summary for trial in trials for trap, summary in alarms(trial).items()}
    if found:
        others.skip_if_excused(found, min(map(share_of_others, trials)), found)
    assert not found


def judged(measure: Callable[..., Trial], experiment: str, settings: tuple[str, ...]) -> Trial:
    """A trial that is valid. One whose instrument was late says so itself, and rightly where others took the CPU."""
    trials = []
    for _ in range(ATTEMPTS):
        trials.append(measure(*settings, experiment=experiment))
        if trials[-1].record.outcome != "invalid":
            return trials[-1]
    reasons = [trial.record.reason for trial in trials]
    others.skip_if_excused((), min(map(share_of_others, trials)), reasons)
    raise AssertionError(reasons)


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
