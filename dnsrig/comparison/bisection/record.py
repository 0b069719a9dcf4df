"""``bisect.json``: what a search looks for, and what it could not measure; and its state, from the trials of the
run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from dnsrig.comparison.bisection.state import Limits, Round, State, Value
from dnsrig.comparison.criterion import Criterion
from dnsrig.comparison.summary import describe
from dnsrig.rundir import SCHEMA_VERSION, SEARCH_FILE, Manifest, Record, Scalar, read_json
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial


class Candidate(Record):
    """One of the commits, or of what takes their place."""

    value: Scalar
    """The value in an experiment, e.g. ``bind@git:HASH``."""
    name: str
    """The name for people: a tag, or the beginning of its hash. No two have the same."""
    subject: str = ""
    """The first line of its message: untrusted text."""


class Search(Record):
    """All but the trials, which are the run's."""

    schema_version: int = SCHEMA_VERSION
    candidates: list[Candidate] = Field(min_length=2)
    """The first is the good end, the last the bad one."""
    path: str
    """What of the experiment they are: ``hosts.secondary.server``."""
    document: dict[str, Any]
    """The experiment without a matrix, as each candidate changes it."""
    criterion: Criterion
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    seed: int
    """Seed of the order of trials in each round, and of the choice among neighbours."""
    failed: dict[int, str] = Field(default_factory=dict)
    """Position of a candidate -> why it cannot be measured."""


def path(directory: Path) -> Path:
    return directory / SEARCH_FILE


Values = Mapping[tuple[str, int], Value]
"""Variant and round -> what is known of a finished trial."""


def search_of(run: Run) -> Search | None:
    """What was looked for; None where the run is no search."""
    file = path(run.directory)
    return read_json(file, Search) if file.exists() else None


def state_of(run: Run, search: Search) -> State:
    """The state of a search, from the finished trials of its run."""
    values = {(t.key.variant, t.key.repeat): value_of(t, search.criterion.metric) for t in run.trials}
    return state(run.manifest, search, values)


def state(manifest: Manifest, search: Search, values: Values) -> State:
    """The state of a search, from trials that were already read."""
    positions = position_of(manifest, search)
    rounds: dict[int, Round] = {}
    for key in manifest.order:
        if (key.variant, key.repeat) in values:
            rounds.setdefault(key.repeat, {})[positions[key.variant]] = values[key.variant, key.repeat]
    return State(
        commits=len(search.candidates) - 1,
        criterion=search.criterion,
        seed=search.seed,
        limits=search.limits,
        unmeasurable=sorted(search.failed),
        rounds=[rounds[number] for number in sorted(rounds)],
    )


def value_of(trial: Trial, metric: str) -> Value:
    """The value of ``trial`` under the metric; None if it is invalid or lacks the metric."""
    value = trial.value(metric)
    if value is not None and describe(metric).counts(trial):
        return value
    return "unfinished" if trial.record.outcome in ("timeout", "server-failed") else None


def position_of(manifest: Manifest, search: Search) -> dict[str, int]:
    """Variant id -> position of its candidate."""
    (label,) = manifest.axes
    known = {candidate.name: number for number, candidate in enumerate(search.candidates)}
    return {variant.id: known[str(variant.parameters[label])] for variant in manifest.variants}
