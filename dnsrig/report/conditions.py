"""Conditions laid flat for people: whatever nested data the lab and the instruments left, as name and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dnsrig.analysis.read import Run
from dnsrig.report.figures import NONE

MOST_ROWS = 400
"""Lines shown of one table; manifest.json and trial.json hold everything."""

_HIDDEN = {"event", "monotonic_ns", "realtime_ns", "anchor_error_ns"}
"""Of an instrument's summary: what only links the event to the clock."""


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested mappings to ``outer.inner`` -> text, in the order given; lists on one line."""
    flat: dict[str, str] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = text(value)
    return dict(list(flat.items())[:MOST_ROWS])


def text(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(text(item) for item in value) or NONE
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text(item)}" for name, item in value.items()) or NONE
    return str(value)


def ranges(mappings: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Over several nested mappings, name -> the value they share, or the range ``31..36`` in which they lie."""
    values: dict[str, list[Any]] = {}
    for mapping in mappings:
        for name, value in _leaves(mapping):
            values.setdefault(name, []).append(value)
    return dict(list({name: _range(found) for name, found in values.items()}.items())[:MOST_ROWS])


def links(run: Run) -> dict[str, dict[str, str]]:
    """Link -> what was measured of it before each trial, as ranges over the trials."""
    found: dict[str, list[dict[str, Any]]] = {}
    for trial in run.trials:
        for number, check in enumerate(trial.record.link_checks):
            name = text(check.get("link") or check.get("ends") or f"link {number + 1}")
            found.setdefault(name, []).append({k: v for k, v in check.items() if k not in ("link", "ends")})
    return {name: ranges(checks) for name, checks in found.items()}


def instruments(run: Run) -> dict[str, dict[str, str]]:
    """Instrument -> its own account of itself, as ranges over the trials: what it cost, what it resolves."""
    names = dict.fromkeys(name for trial in run.trials for name in trial.record.instruments)
    return {name: ranges(_without(trial.record.instruments.get(name, {})) for trial in run.trials) for name in names}


def _without(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What is not an absolute time: those differ in every trial and tell nothing side by side."""
    moments = ("started_ns", "first_answer_ns", "first_seen_ns", "last_seen_ns", "last_unseen_ns")
    return {name: value for name, value in summary.items() if name not in _HIDDEN and name not in moments}


def _leaves(mapping: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _range(values: list[Any]) -> str:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if numbers and len(numbers) == len(values) and min(numbers) != max(numbers):
        return f"{text(min(numbers))}..{text(max(numbers))}"
    return "; ".join(dict.fromkeys(text(value) for value in values))
