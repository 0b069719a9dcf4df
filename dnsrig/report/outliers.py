"""Repeats that lie apart from their fellows, and which trap knows why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dnsrig.comparison.summary import describe
from dnsrig.rundir import Finding, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import statistics

LEAST = 0.05
"""Share of the middle repeat's value. A closer repeat is outside the fences only because the others agree so well."""


@dataclass(frozen=True)
class Outlier:
    """A repeat outside Tukey's fences around the box of its variant, and not for a trifle."""

    trial: Trial
    value: float
    """Value of the main metric; so is ``typical_value``."""
    typical: Trial
    typical_value: float
    """The middle repeat of its variant, which it is compared with."""
    traps: tuple[str, ...]
    """Their ids: found something in this repeat, and not in most of the others."""
    lacks: tuple[str, ...]
    """Ids of traps that found something in most of the others, and not in this one."""

    @property
    def repeat(self) -> int:
        return self.trial.record.spec.repeat

    @property
    def variant(self) -> Variant:
        return self.trial.record.spec.variant

    @property
    def apart_percent(self) -> float:
        """How far from the middle repeat, in percent of that."""
        return 100 * (self.value / self.typical_value - 1) if self.typical_value > 0 else 0.0

    @property
    def apart(self) -> str:
        return f"{self.apart_percent:+.0f} %" if abs(self.apart_percent) >= 1 else f"{self.apart_percent:+.1f} %"

    @property
    def cause(self) -> str:
        """In words: what is known to set it apart."""
        lacks = [f"without {trap}, which most others have" for trap in self.lacks]
        return ", ".join([*self.traps, *lacks]) or "no trap knows why"


def outliers(run: Run, findings: Iterable[Finding]) -> list[Outlier]:
    """The outliers of all variants, in the order of the matrix. Only trials that are done are examined."""
    known = list(findings)
    return [outlier for variant in run.manifest.variants for outlier in _of_variant(run, variant.id, known)]


def timed(run: Run, variant: str) -> list[tuple[float, Trial]]:
    """The variant's trials that count, each with its value of the main metric."""
    counted = (t for t in run.of_variant(variant) if describe(t.record.spec.main_metric).counts(t))
    return [(trial.result, trial) for trial in counted if trial.result is not None]


def _of_variant(run: Run, variant: str, findings: Sequence[Finding]) -> list[Outlier]:
    measured = timed(run, variant)
    apart = statistics.outlying([value for value, _ in measured])
    if not apart:
        return []
    ranked = sorted(measured, key=lambda pair: pair[0])
    typical_value, typical = ranked[(len(ranked) - 1) // 2]
    repeats = {trial.record.spec.repeat for _, trial in measured}
    of_variant = [finding for finding in findings if finding.variant == variant and finding.verdict == "found"]
    return [
        Outlier(trial, value, typical, typical_value, *_causes(of_variant, trial.record.spec.repeat, repeats))
        for value, trial in (measured[index] for index in apart)
        if abs(value - typical_value) >= LEAST * typical_value
    ]


def _causes(findings: Sequence[Finding], repeat: int, repeats: set[int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The traps that found something in this repeat and not in most others; and the reverse."""
    where: dict[str, set[int]] = {}
    for finding in findings:
        if finding.repeat is not None:
            where.setdefault(finding.trap, set()).add(finding.repeat)
    others = repeats - {repeat}
    common = {trap for trap, found in where.items() if 2 * len(found & others) > len(others)}
    has = tuple(trap for trap, found in where.items() if repeat in found and trap not in common)
    return has, tuple(trap for trap, found in where.items() if repeat not in found and trap in common)
