"""Known ways for a measurement to lie: one file each, pure functions over data.

A trap is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``TITLE``: a few words,
- ``SOURCE``: where the trap is described,
- ``ORDER`` (50 by default): those that say what decided a result come before those that say what it is worth,
- ``WEIGHT`` (``distorts`` by default): what a finding does to the result, one of ``WEIGHTS``; a report shows the
  heaviest findings first,
- ``OF_IMPORTED = True`` if it also examines what other tools measured: of that there are latencies and counts, and
  nothing else,
- any of

  - ``before(manifest, conditions) -> Conclusion``: before anything runs, of each machine that it runs on,
  - ``after(trial) -> Conclusion | None``: of one finished trial; None where the trap does not apply to it,
  - ``across(run) -> Iterable[tuple[variant id, Conclusion]]``: of all trials of a run.

The trap's id is the plug-in's name. A trap that had the data and saw nothing says `clear`; one that lacks
data says `cannot-tell`: silence is not an answer. So does one that raises an exception, and one whose data are in a
damaged file: the other traps go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import ModuleType
from typing import Any, Literal, get_args

from dnsrig import discovery
from dnsrig.analysis.failures import RAISED
from dnsrig.analysis.read import Run, Trial
from dnsrig.analysis.rows import DamagedFile
from dnsrig.rundir import Finding, Manifest, Scalar, TrialKey, Verdict
from dnsrig.servers import all_drivers

FIRST = 50
Weight = Literal["invalidates", "distorts", "explains"]
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
"""Heaviest first. The figure is not the one that was asked for; it is, and another setting or machine would change it;
it stands, and this is its cause."""
JUDGED = ("done", "timeout", "invalid")
"""Outcomes of which traps of query load and of paths speak: of an invalid trial they say why it is, and its rows are
there."""


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


Said = list[tuple[str | None, Conclusion]]
"""Of which variant, None: of the whole run."""


def of_servers(trial: Trial, trap: str, hosts: Iterable[str]) -> str:
    """What helps against ``trap`` with the servers on ``hosts``, as their drivers say: `` (BIND 9: transfers-out)``;
    empty where they say nothing."""
    servers = dict.fromkeys(server.kind for name in hosts if (server := trial.record.spec.hosts[name].server))
    drivers = [all_drivers()[kind] for kind in servers if kind in all_drivers()]
    said = [f"{driver.title}: {driver.remedies[trap]}" for driver in drivers if trap in driver.remedies]
    return f" ({'; '.join(said)})" if said else ""


def cannot_tell(why: str) -> Conclusion:
    return Conclusion("cannot-tell", why)


@dataclass(frozen=True)
class Trap:
    id: str
    title: str
    source: str
    description: str
    order: int
    weight: Weight
    module: ModuleType

    @property
    def of_imported(self) -> bool:
        """Whether it examines what other tools measured."""
        return bool(getattr(self.module, "OF_IMPORTED", False))

    def examine(self, run: Run) -> Iterable[Finding]:
        """Everything that this trap has to say of ``run``; where it raises, that it cannot tell."""
        for look, trial in self._looks(run):
            subject, repeat = (trial.variant, trial.repeat) if trial else (None, None)
            try:
                said = look()
            except DamagedFile as error:
                said = [(subject, cannot_tell(error.message))]
            except RAISED as error:
                told = run.failures.add("trap", self.id, error, trial)
                said = [(subject, cannot_tell(f"this trap failed: {told}"))]
            for variant, conclusion in said:
                yield self._finding(conclusion, variant, repeat)

    def _looks(self, run: Run) -> Iterator[tuple[Callable[[], Said], TrialKey | None]]:
        """Each of its functions as it applies to ``run``, and the trial that it is about."""
        if before := getattr(self.module, "before", None):
            yield lambda: [(None, said) for said in _of_machines(before, run.manifest)], None
        for trial in run.trials:
            yield partial(self._of_trial, trial), trial.key
        if across := getattr(self.module, "across", None):
            yield lambda: list(across(run)), None

    def _of_trial(self, trial: Trial) -> Said:
        conclusion = self.after(trial)
        return [] if conclusion is None else [(trial.key.variant, conclusion)]

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


def _of_machines(before: Callable[[Manifest, Mapping[str, Any]], Conclusion], manifest: Manifest) -> list[Conclusion]:
    """What is the same of all machines once; else what is not clear, with the machine's name."""
    said = {machine.name: before(manifest, machine.conditions) for machine in manifest.machines}
    first, *others = said.values() or [before(manifest, manifest.conditions)]
    if all(other == first for other in others):
        return [first]
    return [replace(c, summary=f"Machine {name}: {c.summary}") for name, c in said.items() if c.verdict != "clear"]


@cache
def all_traps() -> dict[str, Trap]:
    found = discovery.plugins(__name__, _trap)
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def _trap(name: str, module: ModuleType) -> Trap:
    description = " ".join((module.__doc__ or "").split())
    order: int = getattr(module, "ORDER", FIRST)
    weight: Weight = getattr(module, "WEIGHT", "distorts")
    return Trap(name, module.TITLE, module.SOURCE, description, order, weight, module)


def examine(run: Run) -> list[Finding]:
    """The findings of all traps; of results of other tools, those of traps that examine them."""
    traps = [trap for trap in all_traps().values() if trap.of_imported or not run.manifest.is_imported]
    return [finding for trap in traps for finding in trap.examine(run)]
