"""Conditions laid flat for people: whatever nested data the lab and the instruments left, as name and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from dnsrig.report.figures import NONE, quantity
from dnsrig.rundir import Manifest
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.text import digits

MOST_ROWS = 400
"""Lines shown of one table; manifest.json and trial.json hold everything."""

_HIDDEN = {"event", "monotonic_ns", "realtime_ns", "anchor_error_ns"}
"""Keys of an instrument's summary that only link the event to the clock."""


def flatten(data: Mapping[str, Any]) -> dict[str, str]:
    """Nested mappings to ``outer.inner`` -> text, in the order given; lists on one line."""
    return ranges([data])


def text(value: Any) -> str:
    """Any value on one line."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return digits(value, 6)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(text(item) for item in value) or NONE
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text(item)}" for name, item in value.items()) or NONE
    return str(value)


def ranges(mappings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Over nested mappings, name -> the value they share, or the range ``31..36`` in which they lie.

    Units go from the names to the values: ``cpu_ns`` is shown as ``cpu``, in milliseconds.
    """
    values: dict[str, list[Any]] = {}
    for mapping in mappings:
        for name, value in _leaves(mapping):
            values.setdefault(name, []).append(value)
    return dict(islice((value_range(name, found) for name, found in values.items()), MOST_ROWS))


def value_range(name: str, values: Sequence[Any]) -> tuple[str, str]:
    """Name without its unit, and the range of ``values`` with it; what is not a number is listed, each once."""
    if not values or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return name, "; ".join(dict.fromkeys(text(value) for value in values)) or NONE
    shown, low = quantity(name, min(values))
    _, high = quantity(name, max(values))
    unit = high.partition(" ")[2]
    return shown, low if low == high else f"{low.removesuffix(f' {unit}')}..{high}"


def by_machine(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Machine -> its conditions; of a run on one machine it has no name."""
    if not manifest.machines:
        return {"": flatten(_of_itself(manifest.conditions))}
    return {machine.name: flatten(_of_itself(machine.conditions)) for machine in manifest.machines}


def around(run: Run) -> dict[str, str]:
    """What may differ from one trial to the next, of this machine and of others, as ranges."""
    return ranges(
        _of_itself(trial.record.read_back)
        | {"machines": {name: machine.read_back for name, machine in trial.record.machines.items()}}
        for trial in run.trials
    )


def _of_itself(told: Mapping[str, Any]) -> dict[str, Any]:
    """Without what has a table of its own (``elsewhere.py``)."""
    return {name: value for name, value in told.items() if name not in ("other_machines", "nics")}


def alike(columns: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Conditions of the machine; with several machines, those that are the same on all."""
    first, *others = columns.values()
    return {name: value for name, value in first.items() if all(facts.get(name) == value for facts in others)}


def differing(columns: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Machine -> what is not the same on all of them; empty where all is."""
    same = alike(columns)
    found = {machine: {n: v for n, v in facts.items() if n not in same} for machine, facts in columns.items()}
    return found if any(found.values()) else {}


def links(run: Run) -> dict[str, dict[str, str]]:
    """Link -> what was measured of it before each trial, as ranges over the trials."""
    found: dict[str, list[dict[str, Any]]] = {}
    for trial in run.trials:
        for number, check in enumerate(trial.record.link_tests, start=1):
            ends = [text(check[end]) for end in ("from", "to") if end in check]
            rest = {name: value for name, value in check.items() if name not in ("from", "to")}
            found.setdefault(" → ".join(ends) or f"link {number}", []).append(rest)
    return {name: ranges(checks) for name, checks in found.items()}


def as_table(columns: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, list[str]], list[str]]:
    """Column -> facts, turned round: fact -> its value in each column; and the facts that are 0 everywhere."""
    names = dict.fromkeys(name for facts in columns.values() for name in facts)
    rows = {name: [facts.get(name, NONE) for facts in columns.values()] for name in names}
    zero = [name for name, cells in rows.items() if set(cells) <= {"0", NONE} and "0" in cells]
    return {name: cells for name, cells in rows.items() if name not in zero}, zero


def instruments(run: Run) -> dict[str, dict[str, str]]:
    """Instrument -> its own account of itself, as ranges over the trials: what it cost, what it resolves."""
    names = dict.fromkeys(name for trial in run.trials for name in _instruments(trial))
    return {name: ranges(_without(trial.record.instruments.get(name, {})) for trial in run.trials) for name in names}


def _instruments(trial: Trial) -> list[str]:
    """The instruments without those in other tables: the shares of a load, and the two ends that compare clocks."""
    spec = trial.record.spec
    shares = [f"-{host}" for host in spec.generators if f"load-{host}" in trial.record.instruments]
    ends = [*(f"clock-{machine}" for machine in spec.machines), *(f"clocks-{host}" for host in spec.hosts)]
    return [name for name in trial.record.instruments if name not in ends and not name.endswith(tuple(shares))]


def _without(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What is not an absolute time: those differ in every trial and tell nothing side by side. Generators have a
    table."""
    moments = ("started_ns", "first_answer_ns", "first_seen_ns", "last_seen_ns", "last_unseen_ns", "generators")
    return {name: value for name, value in summary.items() if name not in _HIDDEN and name not in moments}


def _leaves(mapping: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
