"""The candidates of a search, in order: listed by the user, or the commits of a repository; and their place in the
experiment."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dnsrig import foreign
from dnsrig.analysis.bisection.record import Candidate
from dnsrig.errors import UsageError
from dnsrig.experiment import model, path, preparation, trial_specs
from dnsrig.rundir import Scalar
from dnsrig.servers import driver
from dnsrig.servers.sources import git

MOST_CANDIDATES = 100_000
MOST_LIST_BYTES = 1 << 25
"""Largest list of candidates: a line has at most 300 bytes."""
SHORT_HASH = 12


def listed(text: str) -> list[Candidate]:
    """``bind@bullseye,bind@bookworm,bind@forky``, or ``@FILE`` with one a line, from the good end to the bad one."""
    if text.startswith("@"):
        try:
            lines = foreign.text(Path(text[1:]), MOST_LIST_BYTES).splitlines()
        except (OSError, UnicodeDecodeError, foreign.Refused) as error:
            raise UsageError(
                f"{text[1:]} cannot be read: {error}", hint="name a file with one candidate on each line"
            ) from error
        words = [line.partition("#")[0].strip() for line in lines]
    else:
        words = [word.strip() for word in text.split(",")]
    found = [Candidate(value=_scalar(word), name=word) for word in words if word]
    if twice := next((c.name for number, c in enumerate(found) if c in found[:number]), None):
        raise UsageError(
            f"{twice} appears twice among the candidates", hint="list each once, in the order of the history"
        )
    return check(found)


def narrowed(found: Sequence[Candidate], good: str | None, bad: str | None) -> list[Candidate]:
    """From the candidate called ``good`` to that called ``bad``."""
    names = [candidate.name for candidate in found]
    for name in filter(None, (good, bad)):
        if name not in names:
            raise UsageError(f"{name} is not among the candidates", hint=f"they are {', '.join(names[:20])}")
    first = names.index(good) if good else 0
    last = names.index(bad) if bad else len(names) - 1
    if first >= last:
        raise UsageError(f"{good} does not come before {bad} among the candidates", hint="list them from good to bad")
    return list(found[first : last + 1])


def check(found: list[Candidate]) -> list[Candidate]:
    if len(found) < 2:
        raise UsageError("a search needs at least two candidates, a good and a bad one")
    if len(found) > MOST_CANDIDATES:
        raise UsageError(f"there are {len(found):,} candidates, more than {MOST_CANDIDATES:,}", hint="narrow the ends")
    return found


def base(request: preparation.Request, axis: str | None, value: Scalar) -> tuple[model.Document, str]:
    """The experiment as one variant, and the path that candidates change: ``axis``, or the server under test.

    Variants with another kind of server than ``value`` are left out. Raises UsageError if more than one is left.
    """
    preparation.check_name(request.experiment)
    document, points = _loaded(request)
    if axis is not None:
        return _only(_apart(points, axis), document, axis), axis
    specs = [trial_specs.provisional(request.experiment, point, preparation.own_cpus()) for point in points]
    kind = str(value).partition("@")[0]
    alike = [p for p, s in zip(points, specs) if (server := s.hosts[s.subject].server) and server.kind == kind]
    if not alike:
        raise UsageError(
            f"no variant of {request.experiment} has {kind} as its server under test",
            hint=f"it has {', '.join(sorted({_kind(spec.server) for spec in specs}))}",
        )
    subjects = {s.subject for p, s in zip(points, specs) if p in alike}
    where = f"hosts.{subjects.pop()}.server"
    return _only(_apart(alike, where), document, where), where


def _loaded(request: preparation.Request) -> tuple[model.Document, list[model.Point]]:
    """The experiment and its variants, without a baseline, which a search does not use."""
    document = model.load(model.find(request.experiment), request.scale, request.settings)
    document = document.model_copy(update={"baseline": {}})
    trial_specs.check_size(model.count(document), request.max_trials)
    return document, path.under_one_kernel(model.points(document))


def ends(request: preparation.Request, good: str, bad: str) -> tuple[str, str, str]:
    """Kind of the server, and both references. Each is given as ``KIND@git:REF`` or as ``REF``."""
    kinds, refs = zip(*(_of_kind(text) for text in (good, bad)))
    named = {kind for kind in kinds if kind}
    if len(named) > 1:
        raise UsageError(f"{good} and {bad} belong to different servers", hint="name two commits of one server")
    return (named.pop() if named else kind_under_test(request)), *refs


def _of_kind(text: str) -> tuple[str, str]:
    kind, at, ref = text.partition("@git:")
    return (kind, ref) if at else ("", text)


def kind_under_test(request: preparation.Request) -> str:
    """The kind of the server under test. Raises UsageError if variants of the experiment have different kinds."""
    _, points = _loaded(request)
    specs = [trial_specs.provisional(request.experiment, point, preparation.own_cpus()) for point in points]
    found = sorted({_kind(spec.server) for spec in specs})
    if len(found) > 1:
        raise UsageError(
            f"{request.experiment} has several servers under test: {', '.join(found)}",
            hint="name the server of these commits: --good KIND@git:REF",
        )
    return found[0]


def _kind(server: object) -> str:
    return str(getattr(server, "kind", "none"))


def _apart(points: list[model.Point], axis: str) -> list[model.Point]:
    """The last one of the points that differ only in ``axis``."""
    blank = _at(axis, None)
    return list({json.dumps(model.merged(p.document.model_dump(), blank), sort_keys=True): p for p in points}.values())


def _at(axis: str, value: object) -> dict[str, Any]:
    """``value`` at the path ``axis`` of an experiment, which has TOML's rules."""
    try:
        whole = foreign.toml(f"{axis} = 0")
    except (tomllib.TOMLDecodeError, foreign.Refused) as error:
        raise UsageError(f"{axis!r} is not a path into an experiment", hint="e.g. --vary options.rate_qps") from error
    table = whole
    while isinstance(inner := table[next(iter(table))], dict):
        table = inner
    table[next(iter(table))] = value
    return whole


def _only(points: list[model.Point], document: model.Document, axis: str) -> model.Document:
    if len(points) > 1:
        several = {
            label: sorted({str(p.parameters[label]) for p in points if label in p.parameters})
            for label in model.labels(document)
        }
        told = "; ".join(f"{label}: {', '.join(values)}" for label, values in several.items() if len(values) > 1)
        raise UsageError(
            f"the experiment has {len(points)} variants beside {axis}, and a search takes one ({told})",
            hint="choose with --set, e.g. --set "
            + next((f"{label}={values[-1]}" for label, values in several.items() if len(values) > 1), axis),
        )
    return points[0].document


def point(document: model.Document, axis: str, candidate: Candidate) -> model.Point:
    """The variant of ``candidate``."""
    varied = document.model_copy(update={"matrix": {axis: [candidate.value]}, "exclude": [], "baseline": {}})
    (found,) = model.points(varied)
    return model.Point(dict.fromkeys(found.parameters, candidate.name), found.document)


def _scalar(word: str) -> Scalar:
    """``word`` as a number or a truth value if it is one, otherwise as text."""
    try:
        value = foreign.toml(f"value = {word}")["value"]
    except (tomllib.TOMLDecodeError, foreign.Refused):
        return word
    return value if isinstance(value, int | float | bool) else word


def commits(kind: str, good: str, bad: str, *, first_parent: bool) -> list[Candidate]:
    """The commits of a server's repository from ``good`` to ``bad``, each after its parents.

    ``first_parent``: follow only the first parent of a merge, so that a merge counts as one change. Raises UsageError
    if a reference does not exist, or ``good`` is not an ancestor of ``bad``.
    """
    server = driver(kind)
    first, last = git.commit(server, good), git.commit(server, bad)
    origin = git.repository_of(server)
    if first == last:
        raise UsageError(f"{good} and {bad} are one commit, {first[:SHORT_HASH]}", hint="there is nothing between them")
    if not origin.is_ancestor(first, last):
        turned = origin.is_ancestor(last, first)
        raise UsageError(
            f"{good} is not an ancestor of {bad}",
            hint=f"{bad} comes before {good}: swap them, and reverse the criterion if the result got better"
            if turned
            else f"use the commit at which their branches separate: git merge-base {good} {bad}",
        )
    between = origin.between(first, last, first_parent=first_parent)
    ends = {first: good, last: bad}
    found = [origin.commit(first), *between]
    return check(
        [
            Candidate(
                value=f"{kind}@git:{commit.hash}",
                name=ends.get(commit.hash, commit.hash[:SHORT_HASH]),
                subject=commit.subject[:200],
            )
            for commit in found
        ]
    )
