"""Shows the progress of a run on standard error: moving bars on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dnsrig.experiment.trial import describe
from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial
from dnsrig.text import digits, visible

PLAIN_EVERY_S = 20.0
WIDE = 110
"""Columns of a terminal that has room for a long bar."""
COUNTS_WIDTH = 40
"""Columns of what is beside name and bar: zones up to 9,999,999, times, and the spaces between."""


def result_text(trial: Trial | None, reason: str) -> str:
    if trial is None:
        return f"error: {reason}; set aside, repeated by --resume"
    record = trial.record
    name, value = record.spec.main_metric, trial.result
    if record.outcome == "done" and value is not None:
        is_time = name.endswith("_s") and not name.endswith("_per_s")
        done = f"done in {digits(value)} s" if is_time else f"done, {name} = {digits(value)}"
        return f"{done}: {record.reason}" if record.reason else done
    return f"{record.outcome}: {record.reason}" if record.reason else record.outcome


Key = tuple[str, int]


def _key(spec: TrialSpec) -> Key:
    return spec.variant.id, spec.repeat


def _name(spec: TrialSpec) -> str:
    return visible(f"{spec.variant.label} repeat {spec.repeat}")


@contextmanager
def watching(console: Console) -> Iterator[PlainProgress | LiveProgress]:
    """Progress in the form that fits ``console``."""
    if console.is_terminal and not console.quiet:
        with LiveProgress(console) as live:
            yield live
    else:
        yield PlainProgress(console)


class PlainProgress:
    """A line when a trial ends, and now and then in between. Its number counts the trials that have ended, the next one
    included."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._next, self._total = 1, 0
        self._last: dict[Key, float] = {}
        """Trials that run -> when the last line about each was printed."""

    def note(self, text: str) -> None:
        # Into a file or a pipe a line is a line, however long.
        self.console.print(visible(text), soft_wrap=True)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._next, self._total = number - len(self._last), total
        self._last[_key(spec)] = time.monotonic()

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
        if time.monotonic() - self._last[_key(spec)] > PLAIN_EVERY_S:
            self._last[_key(spec)] = time.monotonic()
            self._line(spec, describe(event))

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        del self._last[_key(spec)]
        self._line(spec, result_text(trial, reason))
        self._next += 1

    def _line(self, spec: TrialSpec, text: str) -> None:
        self.note(f"[{self._next}/{self._total}] {_name(spec)}: {text}")


def fitted(name: str, phase: str, width: int) -> str:
    """The name and phase of a trial in ``width`` columns: the name is cut, because the phase is what changes.

    >>> fitted("server=bind@forky repeat 1", "measure", 20)
    'server=bin…: measure'
    """
    room = max(1, width - len(phase) - 2)
    return f"{name if len(name) <= room else name[: room - 1] + '…'}: {phase}"


class LiveProgress:
    """A bar for the run, and one for each trial that is running."""

    def __init__(self, console: Console) -> None:
        self.console = console
        bar_width = 30 if console.width >= WIDE else 10
        self._room = console.width - bar_width - COUNTS_WIDTH
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=bar_width),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._run = self._bars.add_task("trials", total=None)
        self._trials: dict[Key, TaskID] = {}

    def __enter__(self) -> LiveProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def note(self, text: str) -> None:
        self.console.print(visible(text))

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._bars.update(self._run, completed=number - 1 - len(self._trials), total=total)
        shown = fitted(_name(spec), "setup", self._room)
        self._trials[_key(spec)] = self._bars.add_task(shown, total=spec.dataset.zones)

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
        bar = self._trials[_key(spec)]
        if event["event"] == "phase":
            self._bars.update(bar, description=fitted(_name(spec), event["phase"], self._room), completed=0)
        elif event["event"] == "progress" and "zones" in event:
            self._bars.update(bar, completed=event.get("seen", event.get("done", 0)))

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        self._bars.remove_task(self._trials.pop(_key(spec)))
        self._bars.advance(self._run)
        self.note(f"{_name(spec)}: {result_text(trial, reason)}")
