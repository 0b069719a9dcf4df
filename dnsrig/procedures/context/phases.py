"""The phases of a trial, and readings of its two clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from dnsrig.lab import clock
from dnsrig.rundir import Anchor, Phase

ANCHOR_EVERY_S = 10.0
Report = Callable[[dict[str, Any]], None]
"""A function that takes events: phases and progress."""
PhaseName = Literal["setup", "warmup", "measure", "drain"]


@dataclass
class Phases:
    report: Report
    ended: list[Phase] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    _last_anchor_s: float = 0.0

    @contextmanager
    def phase(self, name: PhaseName) -> Iterator[None]:
        """Everything inside belongs to this phase, even if it ends by an exception."""
        self.report({"event": "phase", "phase": name})
        start = clock.anchor()
        try:
            yield
        finally:
            self.ended.append(Phase(name=name, start=start, end=clock.anchor()))

    def take_anchor(self) -> None:
        """Read both clocks, if the last reading is old enough."""
        if time.monotonic() - self._last_anchor_s >= ANCHOR_EVERY_S:
            self._last_anchor_s = time.monotonic()
            self.anchors.append(clock.anchor())
