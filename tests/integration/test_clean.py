"""No false alarm: each built-in experiment has a clean variant on which no trap finds anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clean import CLEAN

from dnsrig.analysis.read import Trial
from dnsrig.experiment import model
from dnsrig.traps import all_traps

TRIES = 3
"""This machine may really be disturbed once."""
EACH = dict(CLEAN)


def test_every_experiment_has_a_clean_variant() -> None:
    assert set(EACH) == set(model.builtin())


@pytest.mark.parametrize("experiment", sorted(EACH))
def test_clean(measure: Callable[..., Trial], experiment: str) -> None:
    found: dict[str, str] = {}
    for _ in range(TRIES):
        trial = measure(*EACH[experiment], experiment=experiment)
        assert trial.record.outcome == "done", trial.record.reason
        conclusions = {name: trap.after(trial) for name, trap in all_traps().items()}
        found = {name: c.summary for name, c in conclusions.items() if c is not None and c.verdict == "found"}
        if not found:
            return
    raise AssertionError(found)
