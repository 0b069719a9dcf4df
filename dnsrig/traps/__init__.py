"""Known ways for a measurement to lie: one file each, pure functions over data.

A trap is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``TITLE``: a few words,
- ``GROUP``: one of `GROUPS`, the kind of cause, for lists of traps,
- ``SOURCE``: where the trap is described,
- ``ORDER`` (50 by default): traps that explain what decided a result come before traps that judge how reliable it is,
- ``WEIGHT`` (``distorts`` by default): what a finding does to the result, one of ``WEIGHTS``; a report shows the
  heaviest findings first,
- ``CHART`` (none by default): the chart of single trials in which a finding can be seen; such a chart draws a trial of
  each trap that names it,
- ``OUTCOMES`` (all by default): the outcomes of trials that ``after`` examines, `COMPARED` or `JUDGED`,
- ``OF_IMPORTED = True`` if it also examines results of other tools, which have only latencies and counts,
- any of

  - ``before(manifest, conditions) -> Conclusion``: about each machine of the run, before anything runs,
  - ``after(trial) -> Conclusion | None``: about one finished trial; None if the trap does not apply to it,
  - ``across(run) -> Iterable[tuple[variant id, Conclusion]]``: about all trials of a run.

The trap's id is the plug-in's name. A trap that had the data and found nothing reports `clear`. A trap that lacks data
reports `cannot-tell`, because silence is not an answer. A trap that raises an exception or needs a damaged file reports
`cannot-tell`, too; the other traps go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import ModuleType
from typing import Any, Literal, get_args

from dnsrig import discovery
from dnsrig.rundir import Finding, Manifest, Scalar, TrialKey, Verdict
from dnsrig.runs.failures import RAISED
from dnsrig.runs.rows import DamagedFile
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers

GROUPS = (
    "the load generator",
    "the network and TCP",
    "limits of servers and hosts",
    "zone transfers",
    "stalls and warm-up",
    "resolvers and replayed traffic",
    "statistics",
    "the machine and its clocks",
    "other",
)
"""Kinds of causes, in the order of lists; the last one is for traps that declare none."""
FIRST = 50
Weight = Literal["invalidates", "distorts", "explains"]
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
"""Heaviest first. The figure is not the one that was asked for; it is, and another setting or machine would change it;
it stands, and this is its cause."""
COMPARED = ("done", "timeout")
"""Outcomes of trials whose results are compared."""
JUDGED = ("done", "timeout", "invalid")
"""Outcomes of trials whose rows exist: also of invalid trials, because a trap may explain why a trial is invalid."""


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a trap about one subject, with the fields of ``rundir.Finding``."""

    verdict: Verdict
    summary: str = ""
    evidence: Mapping[str, Scalar | None] = field(default_factory=dict)
    series: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    remedy: str = ""


CLEAR = Conclusion("clear")


Said = list[tuple[str | None, Conclusion]]
"""Conclusions with the variant that each is about; None: the whole run."""


def of_servers(trial: Trial, trap: str, hosts: Iterable[str]) -> str:
    """Remedies against ``trap`` for the servers on ``hosts``, from their drivers: `` (BIND 9: transfers-out)``; empty
    without such a remedy."""
    servers = dict.fromkeys(server.kind for name in hosts if (server := trial.record.spec.hosts[name].server))
    drivers = [all_drivers()[kind] for kind in servers if kind in all_drivers()]
    said = [f"{driver.title}: {driver.remedies[trap]}" for driver in drivers if trap in driver.remedies]
    return f" ({'; '.join(said)})" if said else ""


def watched_s(trial: Trial) -> float | None:
    """Seconds from the beginning of the measured time to the end of `measure`."""
    if trial.measure is None or trial.zero_ns is None:
        return None
    return (trial.measure.end.monotonic_ns - trial.zero_ns) / 1e9


def cannot_tell(why: str) -> Conclusion:
    return Conclusion("cannot-tell", why)


@dataclass(frozen=True)
class Trap:
    id: str
    title: str
    group: str
    source: str
    description: str
    order: int
    weight: Weight
    module: ModuleType

    @property
    def chart(self) -> str:
        """The chart of single trials in which a finding can be seen; empty if there is no such chart."""
        return str(getattr(self.module, "CHART", ""))

    @property
    def of_imported(self) -> bool:
        """Whether the trap examines results of other tools."""
        return bool(getattr(self.module, "OF_IMPORTED", False))

    def examine(self, run: Run) -> Iterable[Finding]:
        """All findings of this trap about ``run``; `cannot-tell` if it raises an exception."""
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
        """Each of the trap's functions as it applies to ``run``, and the trial that it is about."""
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
        """The conclusion about one trial; None if the trap does not apply to it."""
        look, outcomes = getattr(self.module, "after", None), getattr(self.module, "OUTCOMES", None)
        is_examined = outcomes is None or trial.record.outcome in outcomes
        return look(trial) if look and is_examined else None

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
    """A single conclusion if it is the same for all machines; otherwise those that are not clear, with the machine's
    name."""
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
    group, order = getattr(module, "GROUP", GROUPS[-1]), getattr(module, "ORDER", FIRST)
    weight: Weight = getattr(module, "WEIGHT", "distorts")
    return Trap(name, module.TITLE, group, module.SOURCE, description, order, weight, module)


def examine(run: Run) -> list[Finding]:
    """The findings of all traps; for results of other tools, only of traps that examine such results."""
    traps = [trap for trap in all_traps().values() if trap.of_imported or not run.manifest.is_imported]
    return [finding for trap in traps for finding in trap.examine(run)]
