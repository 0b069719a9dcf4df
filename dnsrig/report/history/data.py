"""A history as plain data, for other programs: every trial of every version, and the change points."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from dnsrig.comparison.history import Change, History, Point, Series, Value
from dnsrig.metrics import Metric
from dnsrig.runs.run import Run
from dnsrig.stats import statistics
from dnsrig.stats.change_points import PERMUTATIONS, SEED
from dnsrig.stats.statistics import Interval

SCHEMA_VERSION = 1
"""Version of the JSON; raised by one whenever an older reader would misread it."""


def as_json(history: History, out: Path) -> dict[str, Any]:
    """Paths are relative to ``out``, where it is written."""
    return {
        "schema_version": SCHEMA_VERSION,
        "experiment": history.experiment,
        "title": history.title,
        "runs": [_run(run, out) for run in history.runs],
        "search": {"alpha": history.alpha, "permutations": PERMUTATIONS, "seed": SEED},
        "metrics": [
            _metric(metric) | {"series": [_series(s, out) for s in group]} for metric, group in history.metrics
        ],
    }


def path_from(out: Path, path: Path) -> str:
    return os.path.relpath(path.resolve(), out.resolve())


def trial_path(value: Value, out: Path) -> str:
    return path_from(out, value.trial.directory)


def _run(run: Run, out: Path) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "run": manifest.run,
        "path": path_from(out, run.directory),
        "created": manifest.created,
        "scale": manifest.scale,
        "dnsrig_version": manifest.dnsrig_version,
        "kernel": manifest.measured_under.get("kernel"),
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {"metric": metric.name, "title": metric.title, "unit": metric.unit, "better": metric.better}


def _series(series: Series, out: Path) -> dict[str, Any]:
    return {
        "kind": series.kind,
        "parameters": series.parameters,
        "versions": [_point(point, out) for point in series.points],
        "change_points": [_change(change, out) for change in series.changes],
    }


def _point(point: Point, out: Path) -> dict[str, Any]:
    spread = point.samples.spread
    return {
        "label": point.label,
        "server": point.version.server.name,
        "version": point.version.server.version,
        "commit": point.version.commit,
        "outcomes": dict(point.outcomes),
        "searched": point.counts,
        "median": spread.median if spread else None,
        "median_is_at_least": point.samples.censored,
        "interval": _interval(point.samples.interval),
        "trials": [_value(value, out) for value in point.values],
    }


def _value(value: Value, out: Path) -> dict[str, Any]:
    return {
        "run": value.run.manifest.run,
        "variant": value.trial.key.variant,
        "repeat": value.trial.key.repeat,
        **({"machine": value.trial.machine} if value.trial.machine else {}),
        "path": trial_path(value, out),
        "value": value.sample.value,
        "at_least": value.sample.at_least,
    }


def _change(change: Change, out: Path) -> dict[str, Any]:
    compared = change.comparison
    return {
        "from": change.last.label,
        "to": change.first.label,
        "from_commit": change.last.version.commit,
        "to_commit": change.first.version.commit,
        "p": change.p,
        "change": change.kind,
        "measured_in_one_run": not change.apart,
        "percent": compared.percent,
        "interval_percent": _interval(compared.interval),
        "before": _side(change.before, out),
        "after": _side(change.after, out),
    }


def _side(points: list[Point], out: Path) -> dict[str, Any]:
    values = [value for point in points for value in point.values]
    spread = statistics.spread([value.sample.value for value in values])
    return {
        "versions": [point.label for point in points],
        "median": spread.median if spread else None,
        "trials": [trial_path(value, out) for value in values],
    }


def _interval(interval: Interval | None) -> list[float | None] | None:
    """Its two ends; None in place of an infinite upper end, which JSON cannot express."""
    return [interval.low, interval.high if math.isfinite(interval.high) else None] if interval else None
