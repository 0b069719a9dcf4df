"""No false alarm: each built-in experiment has clean variants, on which no trap finds anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clean import CLEAN, MAY_BE_UNSURE, TRUE_HERE, TRUE_OF

from dnsrig.analysis.read import Trial
from dnsrig.experiment import model
from dnsrig.traps import all_traps

ATTEMPTS = 4
"""At a trial that is valid."""


def test_every_experiment_has_a_clean_variant() -> None:
    assert {experiment for experiment, _ in CLEAN} == set(model.builtin())


@pytest.mark.parametrize(("experiment", "settings"), CLEAN, ids=[f"{e}-{n}" for n, (e, _) in enumerate(CLEAN)])
def test_clean(measure: Callable[..., Trial], experiment: str, settings: tuple[str, ...]) -> None:
    """This machine may really be disturbed once: after a finding, the next two trials must both be clean."""
    first = alarms(judged(measure, experiment, settings))
    again = [alarms(judged(measure, experiment, settings)) for _ in range(2)] if first else []
    assert not any(again), [first, *again]


def judged(measure: Callable[..., Trial], experiment: str, settings: tuple[str, ...]) -> Trial:
    """A trial that is valid. One whose instrument was late says so itself, rightly, and so is nothing to judge traps by."""
    for _ in range(ATTEMPTS):
        trial = measure(*settings, experiment=experiment)
        if trial.record.outcome != "invalid":
            return trial
    pytest.skip(f"this machine is too busy: {trial.record.reason}")


def alarms(trial: Trial) -> list[str]:
    assert trial.record.outcome == "done", trial.record.reason
    conclusions = {name: trap.after(trial) for name, trap in all_traps().items()}
    wrong = {
        name: conclusion
        for name, conclusion in conclusions.items()
        if conclusion is not None
        and name not in TRUE_HERE | TRUE_OF.get(trial.record.spec.experiment, set())
        and (conclusion.verdict == "found" or (conclusion.verdict == "cannot-tell" and name not in MAY_BE_UNSURE))
    }
    return [f"{name} {conclusion.verdict}: {conclusion.summary}" for name, conclusion in wrong.items()]
