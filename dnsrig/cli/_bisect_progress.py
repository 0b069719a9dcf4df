"""Shows the progress of a search: its steps, and the trials of each round as in any run."""

from __future__ import annotations

from typing import Any

from dnsrig.cli import _bisect_text
from dnsrig.cli._progress import LiveProgress, PlainProgress
from dnsrig.comparison.bisection.record import Search
from dnsrig.comparison.bisection.search import Measure
from dnsrig.comparison.bisection.state import State
from dnsrig.rundir import TrialSpec
from dnsrig.runs.trial import Trial


class Watch:
    """Adds the steps of a search to the progress of its trials."""

    def __init__(self, trials: LiveProgress | PlainProgress) -> None:
        self._trials = trials

    def step(self, search: Search, state: State, step: Measure) -> None:
        self.note(_bisect_text.step(search, state, step))

    def note(self, text: str) -> None:
        self._trials.note(text)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self._trials.trial_started(number, total, spec)

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
        self._trials.trial_event(spec, event)

    def trial_ended(self, spec: TrialSpec, trial: Trial | None, reason: str) -> None:
        self._trials.trial_ended(spec, trial, reason)
