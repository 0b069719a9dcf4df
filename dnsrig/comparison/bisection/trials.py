"""What the trials of a run say to the search that made them."""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.comparison.bisection import record
from dnsrig.comparison.bisection.record import Search
from dnsrig.comparison.bisection.state import Round, State, Value
from dnsrig.comparison.summary import describe
from dnsrig.rundir import Manifest, read_json
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

Values = Mapping[tuple[str, int], Value]
"""Variant and round -> what is known of a finished trial."""


def search_of(run: Run) -> Search | None:
    """What was looked for; None where the run is no search."""
    path = record.path(run.directory)
    return read_json(path, Search) if path.exists() else None


def state_of(run: Run, search: Search) -> State:
    """Of the trials that are there."""
    values = {(t.key.variant, t.key.repeat): value_of(t, search.criterion.metric) for t in run.trials}
    return state(run.manifest, search, values)


def state(manifest: Manifest, search: Search, values: Values) -> State:
    """Of trials that were read already."""
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
    """What ``trial`` says of the metric: nothing where it is invalid or lacks it."""
    value = trial.value(metric)
    if value is not None and describe(metric).counts(trial):
        return value
    return "unfinished" if trial.record.outcome in ("timeout", "server-failed") else None


def position_of(manifest: Manifest, search: Search) -> dict[str, int]:
    """Variant id -> position of its candidate."""
    (label,) = manifest.axes
    known = {candidate.name: number for number, candidate in enumerate(search.candidates)}
    return {variant.id: known[str(variant.parameters[label])] for variant in manifest.variants}
