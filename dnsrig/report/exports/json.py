"""The tables of a run as JSON: of each metric a row a variant, with what it is compared with and what may be said."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dnsrig.comparison.summary import VariantRow, main_metric, metric_tables
from dnsrig.metrics import Metric
from dnsrig.report import wording
from dnsrig.report.comparison import interval_as_json, run_as_json
from dnsrig.runs.run import Run

SCHEMA_VERSION = 1
"""Raised by one whenever a reader of the old would misread the new."""


def write(run: Run, out: Path) -> list[Path]:
    path = out / "run.json"
    path.write_text(json.dumps(document(run), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return [path]


def document(run: Run) -> dict[str, Any]:
    """All of it as plain data."""
    manifest = run.manifest
    return {
        "schema_version": SCHEMA_VERSION,
        **run_as_json(manifest),
        "title": manifest.title,
        "question": manifest.question,
        "axes": manifest.axes,
        "baseline": manifest.baseline,
        "repeats": manifest.repeats,
        "main_metric": main_metric(run),
        "metrics": [_table(run, metric, rows) for metric, rows in metric_tables(run)],
    }


def _table(run: Run, metric: Metric, rows: list[VariantRow]) -> dict[str, Any]:
    return {
        "name": metric.name,
        "title": metric.title,
        "unit": metric.unit,
        "better": metric.better,
        "variants": [_row(run, row) for row in rows],
    }


def _row(run: Run, row: VariantRow) -> dict[str, Any]:
    """In the metric's unit; ``at_least``: lower bounds of those that hit a limit, which enter the spread, too;
    ``lower``: of values that are known between two ends."""
    spread = row.samples.spread
    numbers = {"median": spread.median, "mean": spread.mean, "min": spread.low, "max": spread.high} if spread else {}
    return {
        "variant": row.variant.id,
        "parameters": row.variant.parameters,
        "outcomes": dict(row.outcomes),
        "values": list(map(_finite, row.samples.measured)),
        "at_least": list(map(_finite, row.samples.bounds)),
        **({"lower": list(map(_finite, row.samples.low))} if row.samples.low != row.samples.numbers else {}),
        **{name: _finite(value) for name, value in numbers.items()},
        "interval": interval_as_json(row.samples.interval),
        "of_baseline": _comparison(run, row),
    }


def _comparison(run: Run, row: VariantRow) -> dict[str, Any] | None:
    """The comparison of a row; None for a baseline, and without one."""
    if row.against is None:
        return None
    found, bound = row.comparison, row.bound
    sign, percent = bound or ((found.bound, found.percent) if found else ("", None))
    return {
        "baseline": row.against.id,
        "percent": _finite(percent),
        "bound": sign,
        "percent_of_means": _finite(found.of_mean.mean) if found and found.of_mean else None,
        "interval": interval_as_json(found.interval if found else None),
        "p": found.p if found else None,
        "p_corrected": found.p_corrected if found else None,
        "change": found.change if found else "undecided",
        "judgement": wording.judgement(row),
    }


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is None or math.isfinite(value) else None
