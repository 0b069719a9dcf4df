"""What primaries support: the answers of an interrogation, a row a question, a column a variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dnsrig.report import figures, wording
from dnsrig.runs.run import Run


@dataclass(frozen=True)
class Cell:
    """``verdict``: yes, no, partly or cannot-tell; ``detail``: one sentence of the instrument."""

    verdict: str
    detail: str


@dataclass(frozen=True)
class Question:
    name: str
    transport: str
    cells: list[Cell | None]


@dataclass(frozen=True)
class FeatureTable:
    columns: list[str]
    questions: list[Question]


def table(run: Run) -> FeatureTable | None:
    """From the first repeat of each variant that was interrogated; None where none was."""
    answers: dict[str, Mapping[tuple[str, str], Cell]] = {}
    for variant in run.manifest.variants:
        told = [t.record.instruments.get("interrogate", {}).get("features") for t in run.of_variant(variant.id)]
        if found := next((features for features in told if features), None):
            answers[variant.id] = {(str(f["name"]), str(f["transport"])): _cell(f) for f in found}
    if not answers:
        return None
    keys = list(dict.fromkeys(key for cells in answers.values() for key in cells))
    questions = [Question(*key, [cells.get(key) for cells in answers.values()]) for key in keys]
    names = [
        " · ".join(wording.parameter(run, value) for value in variant.parameters.values()) or variant.label
        for variant in run.manifest.variants
        if variant.id in answers
    ]
    return FeatureTable(names, questions)


def _cell(feature: Mapping[str, Any]) -> Cell:
    return Cell(str(feature.get("verdict", figures.NONE)), str(feature.get("detail", "")))
