"""What matters most about a run, one line each: what invalidates its result, then what distorts it, then what explains
it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dnsrig.comparison.summary import main_metric
from dnsrig.report import figures, names
from dnsrig.report.gather import TrapReport
from dnsrig.rundir import Outcome, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import WEIGHTS, Weight

MOST = 3
MOST_NAMED = 2
"""Variants that a line names; of more variants it prints the number."""
LONGEST_REASON = 60
"""Characters of a reason that a line has room for."""
OF_OUTCOMES: dict[Outcome, tuple[Weight, str, str]] = {
    "invalid": ("invalidates", "is invalid", "are invalid"),
    "error": ("invalidates", "was not measured", "were not measured"),
    "server-failed": ("distorts", "has no result: the server failed", "have no result: the server failed"),
    "timeout": ("distorts", "hit the limit", "hit the limit"),
}
"""Outcome -> its weight, and the words for one trial and for several."""


@dataclass(frozen=True)
class Headline:
    """One line: ``All ephemeral ports are taken by TIME_WAIT: BIND 9, 200 zones``."""

    weight: Weight
    what: str
    where: str
    """The variants; empty for the whole run."""
    anchor: str
    """The part of the page with the evidence."""
    why: str = ""
    remedy: str = ""
    """What to do about it, in a sentence; empty if nothing is known."""

    def __str__(self) -> str:
        where = f": {self.where}" if self.where else ""
        return f"{self.what}{where}{f' ({self.why})' if self.why else ''}"


def headlines(run: Run, reports: Sequence[TrapReport]) -> list[Headline]:
    """All lines, the worst first; of equal weight, those about the main metric first."""
    main = main_metric(run)
    found = [report for report in reports if report.found]
    told = [*_outcomes(run), *_failures(run)]
    about_main = [report for report in found if main in report.metrics]
    told += [_headline(run, report) for report in (*about_main, *(r for r in found if r not in about_main))]
    return sorted(told, key=lambda line: WEIGHTS.index(line.weight))


def _headline(run: Run, report: TrapReport) -> Headline:
    variants = [entry.variant for entry in report.found]
    where = "" if None in variants else where_of(run, [variant for variant in variants if variant])
    return Headline(
        report.weight, figures.capital(report.title), where, report.anchor, remedy=next(iter(report.remedies), "")
    )


def where_of(run: Run, variants: Iterable[str]) -> str:
    """``BIND 9, 200 zones``; ``3 of 8 variants``; empty for the only variant."""
    wanted = set(variants)
    chosen, total = [v for v in run.manifest.variants if v.id in wanted], len(run.manifest.variants)
    if total == 1:
        return ""
    if len(chosen) == total:
        return "both variants" if total == 2 else f"all {total} variants"
    if len(chosen) > MOST_NAMED:
        return f"{len(chosen)} of {total} variants"
    return "; ".join(_name(run, variant) for variant in chosen)


def _name(run: Run, variant: Variant) -> str:
    return names.name(run, variant, names.varying_axes(run)) or variant.label


def _outcomes(run: Run) -> list[Headline]:
    """A line for each outcome of trials that are not done."""
    by_outcome: dict[Outcome, list[Trial]] = {}
    for trial in run.trials:
        by_outcome.setdefault(trial.record.outcome, []).append(trial)
    return [_outcome(run, by_outcome[outcome]) for outcome in OF_OUTCOMES if outcome in by_outcome]


def _outcome(run: Run, trials: list[Trial]) -> Headline:
    weight, one, several = OF_OUTCOMES[trials[0].record.outcome]
    reasons = {trial.record.reason for trial in trials}
    reason = reasons.pop() if len(reasons) == 1 else ""
    why = reason if len(reason) <= LONGEST_REASON else ""
    what = f"{len(trials):,} of {figures.count(len(run.trials), 'trial')} {one if len(trials) == 1 else several}"
    return Headline(weight, what, where_of(run, (t.record.spec.variant.id for t in trials)), "trials", why)


def _failures(run: Run) -> list[Headline]:
    """A line where parts of dnsrig raised an exception."""
    failed = list(run.failures)
    if not failed:
        return []
    named = ", ".join(dict.fromkeys(f"{failure.part} {failure.name}" for failure in failed[:MOST_NAMED]))
    return [Headline("distorts", f"Parts of the report failed and are left out ({named})", "", "failures")]
