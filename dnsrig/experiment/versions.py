"""Versions of the server under test as an axis of any experiment, and the trials that a history lacks.

Each version is measured in the run in which it is new, interleaved with the other new versions. Earlier results stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dnsrig import procedures
from dnsrig.comparison import history
from dnsrig.comparison.versions import Version
from dnsrig.errors import UsageError
from dnsrig.experiment import model
from dnsrig.procedures import procedure
from dnsrig.rundir import Scalar
from dnsrig.runs.run import Run

MOST_RUNS = 10_000
"""Limit for the folder of a history."""


def of_versions(document: model.Document, servers: Sequence[str]) -> model.Document:
    """``document`` with ``servers`` (``KIND@SOURCE``) as the values of its axis of the server under test.

    If that axis has a table for each server, only the name of the axis stays: all versions do the same. Without such an
    axis, one is added. Raises UsageError if a server is named twice.
    """
    if len(set(servers)) != len(servers):
        raise UsageError("a version is named twice", hint="name each once")
    host = subject(document)
    path = ("hosts", host, "server")
    axis = next((name for name, values in document.matrix.items() if _sets_server(name, values, path)), None)
    name = axis or ".".join(path)
    values: list[Any] | dict[str, Any] = list(servers)
    if axis is not None and isinstance(document.matrix[axis], dict):
        values = {server: {"hosts": {host: {"server": server}}} for server in servers}
    label = dict(zip(document.matrix, model.labels(document), strict=True)).get(name)
    matrix = {**({name: values} if axis is None else {}), **document.matrix, name: values}
    baseline = {axis: value for axis, value in document.baseline.items() if axis != label}
    return document.model_copy(update={"matrix": matrix, "baseline": baseline})


def subject(document: model.Document) -> str:
    """The host whose table in the experiment names the server under test."""
    kind = procedure(document.procedure)
    roles = procedures.hosts(kind, procedures.options_of(kind, document.options))
    return next((role.inherits or name for name, role in roles.items() if role.under_test), "secondary")


def runs_in(folder: Path) -> list[Run]:
    """The runs below ``folder``, the oldest first. Raises UsageError if there are too many."""
    found = sorted(folder.glob("*/*/manifest.json"))
    if len(found) > MOST_RUNS:
        raise UsageError(f"{folder} contains {len(found):,} runs, more than {MOST_RUNS:,}")
    runs = [Run.open(path.parent) for path in found]
    return sorted(runs, key=lambda run: (run.manifest.created, run.manifest.run))


Case = tuple[tuple[str, str], ...]
"""Values on all axes but the servers' axis: they identify a series."""


def cases(points: Iterable[model.Point], servers: Sequence[str]) -> set[Case]:
    """The cases of a matrix that has ``servers`` on an axis."""
    return {_case({name: value for name, value in p.parameters.items() if value not in servers}) for p in points}


def lacking(
    runs: Sequence[Run], wanted: Mapping[str, Version | None], cases: Iterable[Case], repeats: int
) -> dict[int, list[str]]:
    """Number of missing repeats -> the servers of ``wanted`` that lack them. A server without a version is not
    installed.

    The repeats of a version are the repeats of its case with the fewest.
    """
    finished = Counter(
        (version.id, _case(history.parameters(run.manifest, trial.record.spec.variant)))
        for run in runs
        for trial in run.trials
        if (version := history.version_of(trial.record.spec)) is not None
    )
    found: defaultdict[int, list[str]] = defaultdict(list)
    for server, version in wanted.items():
        have = min((finished[version.id, case] for case in cases), default=0) if version else 0
        if have < repeats:
            found[repeats - have].append(server)
    return dict(found)


def unlike(document: model.Document, run: Run) -> list[str]:
    """The keys of ``document`` with another value in the experiment of ``run``. Versions and repeats are not
    compared."""
    ours = document.model_dump(exclude={"matrix", "exclude", "baseline", "repeats"})
    return [
        name for name, value in ours.items() if name in run.manifest.document and run.manifest.document[name] != value
    ]


def _case(parameters: Mapping[str, Scalar]) -> Case:
    return tuple((name, str(value)) for name, value in parameters.items())


def _sets_server(name: str, values: list[Any] | dict[str, Any], path: tuple[str, ...]) -> bool:
    """Whether each value of an axis sets the server at ``path``."""
    if isinstance(values, list):
        return model.axis_path(name) == path
    return all(_at(overlay, path) is not None for overlay in values.values())


def _at(overlay: Any, path: Iterable[str]) -> Any:
    for part in path:
        overlay = overlay.get(part) if isinstance(overlay, dict) else None
    return overlay
