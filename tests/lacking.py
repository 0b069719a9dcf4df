"""Copies of a trial that lack a part: a record, the summary of an instrument, or rows; or that ended otherwise."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial

from dnsrig.rundir import Outcome
from dnsrig.runs.trial import Trial

RECORDS: dict[str, object] = {"phases": [], "servers": {}, "logs": {}, "link_tests": [], "read_back": {}}
OUTCOMES: tuple[Outcome, ...] = ("timeout", "error")
ROWS = ("samples", "zones", "clients", "answers", "load_intervals", "transfers", "connections", "tcp_info", "sockets")


def without_parts(trial: Trial) -> Iterator[tuple[str, Trial]]:
    """What is lacking -> a copy without it."""
    for name, take_away in _parts(trial):
        lacking = copied(trial)
        take_away(lacking)
        yield name, lacking


def copied(trial: Trial) -> Trial:
    """A copy that has the same rows, and computes its metrics anew."""
    found = copy.copy(trial)
    found.record, found._values = trial.record.model_copy(deep=True), {}
    return found


def _parts(trial: Trial) -> Iterator[tuple[str, Callable[[Trial], None]]]:
    for name, nothing in RECORDS.items():
        if getattr(trial.record, name):
            yield f"no {name}", partial(_set_record, name=name, value=nothing)
    for name in trial.record.instruments:
        yield f"no instrument {name}", partial(_drop_instrument, name=name)
    for name in ROWS:
        if not getattr(trial, name).is_empty():
            yield f"no rows of {name}", partial(_clear_rows, name=name)
    for outcome in OUTCOMES:
        if outcome != trial.record.outcome:
            yield f"outcome {outcome}", partial(_set_record, name="outcome", value=outcome)


def _set_record(trial: Trial, name: str, value: object) -> None:
    setattr(trial.record, name, value)


def _drop_instrument(trial: Trial, name: str) -> None:
    del trial.record.instruments[name]


def _clear_rows(trial: Trial, name: str) -> None:
    trial.__dict__[name] = getattr(trial, name).clear()
