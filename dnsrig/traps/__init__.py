"""Known ways for a measurement to lie: one file each, pure functions over data.

A trap is a module of this folder with

- ``TITLE``: a few words,
- ``SOURCE``: where the trap is described,
- any of ``before(plan, conditions)``, ``after(trial)``, ``across(run)``, each returning findings.

``before`` looks at the manifest before anything runs, ``after`` at one finished trial, ``across`` at all
trials of a run. The trap's id is the module's name with dashes. A trap that had the data and saw
nothing says `clear`; one that lacks data says `cannot-tell`: silence is not an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from dnsrig import discovery
from dnsrig.analysis.read import Run
from dnsrig.rundir import Finding


@dataclass(frozen=True)
class Trap:
    id: str
    title: str
    source: str
    description: str
    module: ModuleType

    def examine(self, run: Run) -> Iterable[Finding]:
        """Everything that this trap has to say of ``run``."""
        if before := getattr(self.module, "before", None):
            yield from before(run.manifest, run.manifest.conditions)
        if after := getattr(self.module, "after", None):
            for trial in run.trials:
                yield from after(trial)
        if across := getattr(self.module, "across", None):
            yield from across(run)


@cache
def all_traps() -> dict[str, Trap]:
    found = {}
    for module in discovery.modules(__name__):
        identifier = module.__name__.rpartition(".")[2].replace("_", "-")
        description = " ".join((module.__doc__ or "").split())
        found[identifier] = Trap(identifier, module.TITLE, module.SOURCE, description, module)
    return found


def examine(run: Run) -> list[Finding]:
    """The findings of all traps."""
    return [finding for trap in all_traps().values() for finding in trap.examine(run)]
