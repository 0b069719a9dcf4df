"""Trials that lack a part: metrics and traps that need it have no value and no verdict, and none of them fails.

The figures of each whole trial, and those that change if a part is lacking, are in unit/golden/incomplete.
"""

from __future__ import annotations

import made_up_runs
import pytest
from golden_files import hold
from lacking import copied, without_parts

from dnsrig.metrics import all_metrics
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

KINDS = (
    "climbed", "pulled", "sites", "far", "narrow", "replayed", "owned", "connected", "run",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return made_up_runs.of_every_kind(tmp_path_factory.mktemp("incomplete"))


def figures(trial: Trial) -> dict[str, float | str]:
    """Every metric that has a value, and every trap that has a verdict."""
    values = {name: metric.of(trial) for name, metric in all_metrics().items()}
    verdicts: dict[str, float | str] = {
        name: said.verdict for name, trap in all_traps().items() if (said := trap.after(trial))
    }
    return {name: value for name, value in values.items() if value is not None} | verdicts


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_trial_without_a_part_tells(runs: dict[str, Run], kind: str) -> None:
    trial = runs[kind].trials[0]
    whole = figures(copied(trial))
    changed = {}
    for name, lacking in without_parts(trial):
        found = figures(lacking)
        changed[name] = {key: found.get(key) for key in whole | found if found.get(key) != whole.get(key)}
    hold("incomplete", {"whole": whole, **changed})
