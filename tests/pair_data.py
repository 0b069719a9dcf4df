"""Runs of two versions of BIND out of thin air, for tests: the second one costs twice as much of some things."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import synthetic

from dnsrig.rundir import ProcessCounts, Scalar, write_json
from dnsrig.runs.run import Run

OLD, NEW = "bind@9.18.9", "bind@9.18.10"


def measured(
    directory: Path,
    *,
    servers: Sequence[str] = (OLD, NEW),
    baseline: dict[str, Scalar] | None = None,
    repeats: int = 3,
    answered: int = 0,
) -> Run:
    """The machine drifts by a tenth each round, which all versions show alike. ``answered``: queries, in each trial."""
    plan = synthetic.Plan(servers=servers, zones=[50], repeats=repeats, samples=False, baseline=baseline or {})
    run = Run.open(synthetic.build(directory, plan))
    for trial in run.trials:
        drift, times = 10 + trial.record.spec.repeat, 2 if trial.record.spec.variant.parameters["server"] == NEW else 1
        trial.record.counts["secondary"] = ProcessCounts(
            voluntary_switches=100 * drift * times,
            involuntary_switches=10 * drift,
            minor_faults=20 * drift * times,
            major_faults=0,
        )
        if answered:
            trial.record.instruments["load"] = {"model": "rate", "sent": answered, "answered": answered}
        write_json(trial.directory / "trial.json", trial.record)
    return Run.open(directory)
