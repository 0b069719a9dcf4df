"""What the processes of hosts do while a trial measures: CPU stacks, context switches and page faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from dnsrig.lab import process_counts
from dnsrig.lab.process_counts import Reading
from dnsrig.lab.profile import Profiler
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.rundir import ProcessCounts, ProfileRecord


@dataclass
class Profiling:
    """CPU stacks of the hosts for which the experiment sets ``profile``."""

    workspace: Workspace
    profiles: dict[str, ProfileRecord] = field(default_factory=dict)
    _pids: dict[str, set[int]] = field(default_factory=dict)

    @cached_property
    def unavailable(self) -> str | None:
        """Why stacks cannot be sampled, if a host needs it. The test takes a second, so run it long before
        `measure`."""
        return Profiler.unavailable() if any(host.profile for host in self.workspace.spec.hosts.values()) else None

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Sample from before to after the code inside."""
        directory, profilers = self.workspace.directory, {}
        for name, host in self.workspace.spec.hosts.items():
            if not host.profile:
                continue
            if self.unavailable:
                self.profiles[name] = ProfileRecord(reason=self.unavailable)
                continue
            self._pids[name] = set()
            profilers[name] = Profiler.start(name, host.cpus, directory / f"profile-{name}.data")
        try:
            yield
        finally:
            self.note_pids()
            for name, profiler in profilers.items():
                self.profiles[name] = profiler.stop(self._pids.pop(name), directory / f"profile-{name}.folded")

    def note_pids(self) -> None:
        """Record the processes of hosts, which come and go: only samples of these count in a profile."""
        for name in self._pids:
            self._pids[name] |= self.workspace.pids(name)


@dataclass
class Counting:
    """Context switches and page faults of the server under test."""

    workspace: Workspace
    counts: dict[str, ProcessCounts] = field(default_factory=dict)
    """Counts by host."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count from just before to just after the code inside."""
        before = self._read()
        try:
            yield
        finally:
            after = self._read()
            self.counts = {name: process_counts.between(before[name], after[name]) for name in after}

    def _read(self) -> dict[str, Reading]:
        name = self.workspace.spec.subject
        return {name: process_counts.read(self.workspace.pids(name))} if self.workspace.spec.server else {}
