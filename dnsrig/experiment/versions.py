"""Versions of the server under test as an axis of any experiment, and which trials of them a history lacks.

Each version is measured in the run in which it is new, interleaved with those that are new with it; what was measured
stays.
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
"""In the folder of a history."""


def of_versions(document: model.Document, servers: Sequence[str]) -> model.Document:
    """``document`` with ``servers`` (``KIND@SOURCE``) as the values of its axis of the server under test.

    Where that axis has a table for each server, only its name stays: all versions are asked to do the same. Without
    such an axis one is added. Raises UsageError where a server is named twice.
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
    """The host whose table of the experiment says which server is under test."""
    kind = procedure(document.procedure)
    roles = procedures.hosts(kind, {**kind.OPTIONS, **document.options})
    return next((role.inherits or name for name, role in roles.items() if role.under_test), "secondary")


def runs_in(folder: Path) -> list[Run]:
    """The runs below ``folder``, those made first first. Raises UsageError where there are too many."""
    found = sorted(folder.glob("*/*/manifest.json"))
    if len(found) > MOST_RUNS:
        raise UsageError(f"{folder} contains {len(found):,} runs, more than {MOST_RUNS:,}")
    runs = [Run.open(path.parent) for path in found]
    return sorted(runs, key=lambda run: (run.manifest.created, run.manifest.run))


Case = tuple[tuple[str, str], ...]
"""The values on the matrix but the server's: of a series."""


def cases(points: Iterable[model.Point], servers: Sequence[str]) -> set[Case]:
    """Those of a matrix that has ``servers`` on an axis."""
    return {_case({name: value for name, value in p.parameters.items() if value not in servers}) for p in points}


def lacking(
    runs: Sequence[Run], wanted: Mapping[str, Version | None], cases: Iterable[Case], repeats: int
) -> dict[int, list[str]]:
    """How many repeats are lacking -> of which of the servers ``wanted``. None: not installed yet, so not measured.

    A version has as many repeats as the one of ``cases`` that has fewest.
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
    """The keys of ``document`` that have another value in the experiment that ``run`` executed; its versions and the
    number of repeats are not looked at."""
    ours = document.model_dump(exclude={"matrix", "exclude", "baseline", "repeats"})
    return [
        name for name, value in ours.items() if name in run.manifest.document and run.manifest.document[name] != value
    ]


def _case(parameters: Mapping[str, Scalar]) -> Case:
    return tuple((name, str(value)) for name, value in parameters.items())


def _sets_server(name: str, values: list[Any] | dict[str, Any], path: tuple[str, ...]) -> bool:
    """Whether an axis says which server runs on the host of ``path``, for each of its values."""
    if isinstance(values, list):
        return model.axis_path(name) == path
    return all(_at(overlay, path) is not None for overlay in values.values())


def _at(overlay: Any, path: Iterable[str]) -> Any:
    for part in path:
        overlay = overlay.get(part) if isinstance(overlay, dict) else None
    return overlay
