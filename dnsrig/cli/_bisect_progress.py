"""Shows a search to a person: its steps, and the trials of each round as those of any run."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from dnsrig.analysis.bisection.record import Search
from dnsrig.analysis.bisection.search import Measure
from dnsrig.analysis.bisection.state import State
from dnsrig.analysis.read import Trial
from dnsrig.cli import _bisect_text
from dnsrig.cli._progress import LiveProgress, PlainProgress
from dnsrig.rundir import TrialSpec


class Watch:
    """Moving bars on a terminal, plain lines otherwise."""

    def __init__(self, console: Console) -> None:
        self._bars = LiveProgress(console) if console.is_terminal else None
        self._inner = self._bars or PlainProgress(console)

    def __enter__(self) -> Watch:
        if self._bars:
            self._bars.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.__exit__()

    def step(self, search: Search, state: State, step: Measure) -> None:
        self.note(_bisect_text.step(search, state, step))

    def note(self, text: str) -> None:
        self._inner.note(text)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._inner.trial_started(number, total, spec)

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
        self._inner.trial_event(spec, event)

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        self._inner.trial_ended(spec, trial, reason)
