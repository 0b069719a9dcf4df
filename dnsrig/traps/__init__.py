"""Known ways for a measurement to lie: one file each, pure functions over data.

A trap is a module of this folder with

- ``TITLE``: a few words,
- ``SOURCE``: where the trap is described,
- ``ORDER`` (50 by default): those that say what decided a result come before those that say what it is worth,
- any of

  - ``before(manifest, conditions) -> Conclusion``: before anything runs,
  - ``after(trial) -> Conclusion | None``: of one finished trial; None where the trap does not apply to it,
  - ``across(run) -> Iterable[tuple[variant id, Conclusion]]``: of all trials of a run.

The trap's id is the module's name with dashes. A trap that had the data and saw nothing says `clear`; one that lacks
data says `cannot-tell`: silence is not an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

from dnsrig import discovery
from dnsrig.analysis.read import Run, Trial
from dnsrig.rundir import Finding, Scalar, Verdict

FIRST = 50
INSTRUMENT_HOST = "observer"
"""Where `load` and `probe` run."""
JUDGED = ("done", "limit", "invalid")
"""Outcomes of which traps of query load and of paths speak: of an invalid trial they say why it is, and its rows are there."""
EVERYWHERE: tuple[str | None, int | None] = (None, None)


@dataclass(frozen=True)
class Conclusion:
    """What a trap says of one subject; the fields are those of ``rundir.Finding``."""

    verdict: Verdict
    summary: str = ""
    evidence: Mapping[str, Scalar | None] = field(default_factory=dict)
    series: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    remedy: str = ""


CLEAR = Conclusion("clear")


def cannot_tell(why: str) -> Conclusion:
    return Conclusion("cannot-tell", why)


@dataclass(frozen=True)
class Trap:
    id: str
    title: str
    source: str
    description: str
    order: int
    module: ModuleType

    def examine(self, run: Run) -> Iterable[Finding]:
        """Everything that this trap has to say of ``run``."""
        if before := getattr(self.module, "before", None):
            yield self._finding(before(run.manifest, run.manifest.conditions), *EVERYWHERE)
        for trial in run.trials:
            if (conclusion := self.after(trial)) is not None:
                yield self._finding(conclusion, trial.record.spec.variant.id, trial.record.spec.repeat)
        if across := getattr(self.module, "across", None):
            for variant, conclusion in across(run):
                yield self._finding(conclusion, variant, None)

    def after(self, trial: Trial) -> Conclusion | None:
        """What it says of one trial."""
        look = getattr(self.module, "after", None)
        return look(trial) if look else None

    def _finding(self, conclusion: Conclusion, variant: str | None, repeat: int | None) -> Finding:
        return Finding(
            trap=self.id,
            verdict=conclusion.verdict,
            variant=variant,
            repeat=repeat,
            summary=conclusion.summary,
            evidence=dict(conclusion.evidence),
            series=list(conclusion.series),
            metrics=list(conclusion.metrics),
            remedy=conclusion.remedy,
            source=self.source,
        )


@cache
def all_traps() -> dict[str, Trap]:
    found = {}
    for module in discovery.modules(__name__):
        identifier = module.__name__.rpartition(".")[2].replace("_", "-")
        description = " ".join((module.__doc__ or "").split())
        order = getattr(module, "ORDER", FIRST)
        found[identifier] = Trap(identifier, module.TITLE, module.SOURCE, description, order, module)
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def examine(run: Run) -> list[Finding]:
    """The findings of all traps."""
    return [finding for trap in all_traps().values() for finding in trap.examine(run)]
