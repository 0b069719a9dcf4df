"""The manipulation checks of a run, for people: what each variant had to be, and what was seen of it over its
repeats."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dnsrig.checks import amount, wanted
from dnsrig.rundir import Check, Variant
from dnsrig.runs.run import Run


@dataclass(frozen=True)
class Line:
    """One check of one variant, over its repeats."""

    variant: Variant
    checks: list[Check]

    @property
    def title(self) -> str:
        return self.checks[0].title

    @property
    def seen(self) -> str:
        """``97.4 %``, or ``0 to 97.4 %`` where repeats differ."""
        values = [check.seen for check in self.checks if check.seen is not None]
        numbers = sorted(value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
        unit = self.checks[0].unit
        if not values:
            return "cannot tell"
        if len(numbers) < len(values):
            return ", ".join(dict.fromkeys(str(value) for value in values))
        low, high = amount(numbers[0], ""), amount(numbers[-1], unit)
        return high if amount(numbers[-1], "") == low else f"{low} to {high}"

    @property
    def wanted(self) -> str:
        return wanted(self.checks[0])

    @property
    def verdict(self) -> str:
        """``passed``, or how many of the repeats did what."""
        counts = Counter(check.verdict.replace("-", " ") for check in self.checks)
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))

    @property
    def reason(self) -> str:
        return next((check.reason for check in self.checks if check.verdict != "passed"), "")

    @property
    def holds(self) -> bool:
        return all(check.verdict == "passed" for check in self.checks)


def lines(run: Run) -> list[Line]:
    """Every check of every variant, in the order of the matrix."""
    found = []
    for variant in run.manifest.variants:
        by_name: dict[str, list[Check]] = {}
        for trial in run.of_variant(variant.id):
            for check in trial.record.checks:
                by_name.setdefault(check.name, []).append(check)
        found += [Line(variant, checks) for checks in by_name.values()]
    return found


def summary(run: Run) -> str:
    """``30 passed, 1 failed, 2 cannot tell``; empty where no trial has any."""
    counts = Counter[str](check.verdict for trial in run.trials for check in trial.record.checks)
    names = {"passed": "passed", "failed": "failed", "cannot-tell": "cannot tell"}
    return ", ".join(f"{counts[verdict]:,} {name}" for verdict, name in names.items() if counts[verdict])
