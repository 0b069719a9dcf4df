"""Findings for people: what a trap finds in every repeat of a variant is one entry, not ten.

findings.json keeps them all; here they are gathered for the page and the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dnsrig.rundir import Finding, Scalar, Verdict
from dnsrig.runs.run import Run
from dnsrig.traps import WEIGHTS, Weight, all_traps

_FIGURE = re.compile(r"\d[\d.,]*")
_VERDICTS: tuple[Verdict, ...] = ("found", "cannot-tell", "clear")


@dataclass(frozen=True)
class Entry:
    """The findings of one trap about one variant, or about the whole run."""

    verdict: Verdict
    variant: str | None
    subject: str
    """The variant's label, or ``the whole run``."""
    where: str
    """``in 3 of 3 repeats``; empty where repeats do not come into it."""
    findings: list[Finding]

    @property
    def summary(self) -> str:
        return next((f.summary for f in self.findings if f.summary), "")

    @property
    def example(self) -> int | None:
        """The repeat that ``summary`` describes, if there are others."""
        return self.findings[0].repeat if len(self.findings) > 1 else None

    @property
    def evidence(self) -> dict[str, list[Scalar]]:
        """Name -> its value in each finding: numbers sorted, so that the ends are the range; of texts the first."""
        names = dict.fromkeys(name for finding in self.findings for name in finding.evidence)
        found = {name: _sorted([f.evidence.get(name) for f in self.findings]) for name in names}
        return {name: values for name, values in found.items() if values}

    @property
    def series(self) -> list[str]:
        return list(dict.fromkeys(series for finding in self.findings for series in finding.series))

    @property
    def metrics(self) -> set[str]:
        return {metric for finding in self.findings for metric in finding.metrics}


@dataclass(frozen=True)
class TrapReport:
    """The findings of one trap about a run; what all entries share is stored once."""

    id: str
    title: str
    description: str
    source: str
    remedies: list[str]
    entries: list[Entry]
    weight: Weight = "distorts"

    @property
    def anchor(self) -> str:
        return f"trap-{self.id}"

    @property
    def found(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.verdict == "found"]

    @property
    def unsure(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.verdict == "cannot-tell"]

    @property
    def found_alike(self) -> list[list[Entry]]:
        """``found``, with variants whose summaries differ in figures alone together."""
        return _alike((_FIGURE.sub("#", entry.summary), entry) for entry in self.found)

    @property
    def unsure_alike(self) -> list[list[Entry]]:
        """``unsure``, with variants that have the same summary together."""
        return _alike((entry.summary, entry) for entry in self.unsure)

    @property
    def is_clear(self) -> bool:
        return all(entry.verdict == "clear" for entry in self.entries)

    @property
    def remarks(self) -> list[str]:
        """Remarks of a trap that found nothing, each once."""
        return list(dict.fromkeys(entry.summary for entry in self.entries if self.is_clear and entry.summary))

    @property
    def metrics(self) -> set[str]:
        return {metric for entry in self.found for metric in entry.metrics}

    def concerns(self, variant: str | None) -> bool:
        """Whether something was found in ``variant``; None: in the run as a whole."""
        return any(entry.variant == variant for entry in self.found)


def _alike(entries: Iterable[tuple[str, Entry]]) -> list[list[Entry]]:
    by_words: dict[str, list[Entry]] = {}
    for words, entry in entries:
        by_words.setdefault(words, []).append(entry)
    return list(by_words.values())


def together(entries: Sequence[Entry]) -> Entry:
    """Several entries of `found_alike` as one, whose evidence spans them all."""
    findings = [finding for entry in entries for finding in entry.findings]
    return replace(entries[0], findings=findings)


def gather(run: Run, findings: Iterable[Finding]) -> list[TrapReport]:
    """``findings`` by trap: those that found something first, the heaviest before the others; within a trap by variant,
    found first."""
    by_trap: dict[str, list[Finding]] = {}
    for finding in findings:
        by_trap.setdefault(finding.trap, []).append(finding)
    reports = [_report(run, trap, group) for trap, group in by_trap.items()]
    return sorted(reports, key=lambda report: (not report.found, not report.unsure, WEIGHTS.index(report.weight)))


def _report(run: Run, trap: str, findings: list[Finding]) -> TrapReport:
    known = all_traps().get(trap)
    said = [finding for finding in findings if finding.verdict == "found"]
    return TrapReport(
        id=trap,
        title=known.title if known else trap,
        description=known.description if known else "",
        source=next((f.source for f in findings if f.source), known.source if known else ""),
        remedies=list(dict.fromkeys(f.remedy for f in said if f.remedy)),
        entries=_entries(run, findings),
        weight=known.weight if known else "distorts",
    )


def _entries(run: Run, findings: list[Finding]) -> list[Entry]:
    position = {variant.id: number for number, variant in enumerate(run.manifest.variants)}

    def key(finding: Finding) -> tuple[int, int, str]:
        return (_VERDICTS.index(finding.verdict), position.get(finding.variant or "", -1), finding.variant or "")

    groups = [list(group) for _, group in groupby(sorted(findings, key=key), key=key)]
    return [_entry(run, group) for group in groups]


def _entry(run: Run, findings: list[Finding]) -> Entry:
    variant = findings[0].variant
    labels = {v.id: v.label for v in run.manifest.variants}
    repeats = {f.repeat for f in findings if f.repeat is not None}
    measured = len(run.of_variant(variant)) if variant is not None else len(run.trials)
    where = _where(len(repeats), measured)
    subject = "the whole run" if variant is None else labels.get(variant, variant)
    return Entry(findings[0].verdict, variant, subject, where, findings)


def _where(repeats: int, measured: int) -> str:
    if not repeats:
        return ""
    return "in the only repeat" if measured == 1 else f"in {repeats} of {measured} repeats"


def _sorted(values: Iterable[Scalar | None]) -> list[Scalar]:
    present = [value for value in values if value not in (None, "")]
    if all(isinstance(value, int | float) for value in present):
        return sorted(present, key=float)
    return present[:1]
