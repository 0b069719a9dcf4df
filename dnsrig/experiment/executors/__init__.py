"""Where a trial is executed: one file for each `Executor`. The ``kernel`` of a spec names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from dnsrig import discovery
from dnsrig.errors import UsageError
from dnsrig.experiment.executors import running, uml
from dnsrig.procedures.context.phases import Report
from dnsrig.rundir import TrialRecord, TrialSpec


class Executor(Protocol):
    """A module of this folder, or of another package (`dnsrig.discovery`), that executes trials."""

    APART: bool
    """Whether trials there do not disturb each other: each has a kernel and a CPU of its own."""
    OVERHEAD_S: float
    """Time that a trial takes beside its work: for network, servers and removal."""

    def run_trial(self, spec: TrialSpec, directory: Path, report: Report) -> TrialRecord:
        """Execute ``spec`` and report its events. ``directory`` appears whole, by rename, or not at all."""

    def provide(self, specs: Sequence[TrialSpec], note: Callable[[str], None]) -> dict[str, Any]:
        """Prepare to execute ``specs``, before the first of them; return what to add to the run's conditions.

        Raises UsageError if they ask for something that does not exist there.
        """

    def changed(self, conditions: dict[str, Any]) -> str:
        """Why a run with these ``conditions`` cannot be resumed, as a clause; empty: it can."""


_: tuple[Executor, ...] = (running, uml)  # for mypy: a module has what the protocol says


@cache
def all_executors() -> dict[str, Executor]:
    wanted = discovery.having("APART", "OVERHEAD_S", "run_trial", "provide", "changed")
    return cast(dict[str, Executor], discovery.plugins(__name__, wanted))


def executor(kernel: str) -> Executor:
    if kernel not in all_executors():
        raise UsageError(f"there is no kernel {kernel!r}", hint=f"known: {', '.join(all_executors())}")
    return all_executors()[kernel]
