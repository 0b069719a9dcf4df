"""Context switches and page faults of the server under test, while a trial measures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from dnsrig.lab import process_counts
from dnsrig.lab.process_counts import Reading
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.rundir import ProcessCounts


@dataclass
class Counting:
    workspace: Workspace
    counts: dict[str, ProcessCounts] = field(default_factory=dict)
    """By host."""

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count from just before to just after what is inside."""
        before = self._read()
        try:
            yield
        finally:
            after = self._read()
            self.counts = {name: process_counts.between(before[name], after[name]) for name in after}

    def _read(self) -> dict[str, Reading]:
        name = self.workspace.spec.subject
        return {name: process_counts.read(self.workspace.pids(name))} if self.workspace.spec.server else {}
