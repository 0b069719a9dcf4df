"""Bencher Metric Format, as `bencher run --adapter json --file` reads it: a file for each version.

``{benchmark: {measure: {value, lower_value, upper_value}}}``. The value is the median; from five trials on it has the
ends of its 95 % interval.
"""

from __future__ import annotations

from pathlib import Path

from dnsrig.comparison.history import History, Point
from dnsrig.report.history_exports import benchmark, by_version, median, write_json


def write(history: History, out: Path) -> list[Path]:
    written = []
    for name, points in by_version(history):
        found: dict[str, dict[str, dict[str, float]]] = {}
        for series, point in points:
            if measured := _metric(point):
                found.setdefault(benchmark(history, series), {})[series.metric.name] = measured
        written.append(write_json(out / f"{name}.json", found))
    return written


def _metric(point: Point) -> dict[str, float]:
    value, interval = median(point), point.samples.interval
    if value is None:
        return {}
    ends = {"lower_value": interval.low, "upper_value": interval.high} if interval else {}
    return {"value": value, **ends}
