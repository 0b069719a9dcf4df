"""Shows a run to a person: a moving display on a terminal, plain lines otherwise. All on standard error."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dnsrig.experiment.trial import describe
from dnsrig.rundir import TrialRecord, TrialSpec

PLAIN_EVERY_S = 20.0


def result_text(record: TrialRecord | None, reason: str) -> str:
    if record is None:
        return f"error: {reason}; set aside, repeated by --resume"
    name = record.spec.main_metric
    value = record.metrics.get(name)
    if record.outcome == "done" and value is not None:
        is_time = name.endswith("_s") and not name.endswith("_per_s")
        return f"done in {value:.3g} s" if is_time else f"done, {name} = {value:.3g}"
    return f"{record.outcome}: {record.reason}" if record.reason else record.outcome


class PlainProgress:
    """A line when a trial starts or ends, and now and then in between."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._last = 0.0

    def note(self, text: str) -> None:
        self.console.print(text, markup=False)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._name = f"[{number}/{total}] {spec.variant.label} repeat {spec.repeat}"
        self._last = time.monotonic()

    def trial_event(self, event: dict[str, Any]) -> None:
        if time.monotonic() - self._last > PLAIN_EVERY_S:
            self._last = time.monotonic()
            self.note(f"{self._name}: {describe(event)}")

    def trial_ended(self, spec: TrialSpec, record: TrialRecord | None, reason: str) -> None:
        self.note(f"{self._name}: {result_text(record, reason)}")


class LiveProgress:
    """One bar for the run, one line for the trial."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._run = self._bars.add_task("trials", total=None)
        self._trial: Any = None

    def __enter__(self) -> LiveProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def note(self, text: str) -> None:
        self.console.print(text, markup=False)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._bars.update(self._run, completed=number - 1, total=total)
        self._name = f"{spec.variant.label} repeat {spec.repeat}"
        self._trial = self._bars.add_task(f"{self._name}: setup", total=spec.dataset.zones)

    def trial_event(self, event: dict[str, Any]) -> None:
        if event["event"] == "phase":
            self._bars.update(self._trial, description=f"{self._name}: {event['phase']}", completed=0)
        elif event["event"] == "progress" and "zones" in event:
            self._bars.update(self._trial, completed=event.get("seen", event.get("done", 0)))

    def trial_ended(self, spec: TrialSpec, record: TrialRecord | None, reason: str) -> None:
        self._bars.remove_task(self._trial)
        self._bars.advance(self._run)
        self.note(f"{self._name}: {result_text(record, reason)}")
