"""OpenMetrics text (version 1.0.0): a gauge a metric, by version, as of now and without timestamps.

`low` and `high` are the ends of the median's 95 % interval, from five trials on. ``dnsrig_change_percent`` has the
change points: the median after in percent of that before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from dnsrig.comparison.history import History, Point, Series
from dnsrig.metrics import Metric
from dnsrig.report.history_exports import median


def write(history: History, out: Path) -> list[Path]:
    path = out / f"{history.experiment}.openmetrics.txt"
    path.write_text("\n".join([*_lines(history), "# EOF", ""]), encoding="utf-8")
    return [path]


def _lines(history: History) -> Iterator[str]:
    for metric, group in history.metrics:
        yield from _family(_name(metric), f"{metric.title}, in {metric.unit}: median of the trials of a version")
        for series in group:
            for point in series.points:
                yield from _samples(history, series, point)
    yield from _family("dnsrig_trials", "trials that a median is of")
    for series in history.series:
        for point in series.points:
            yield _sample("dnsrig_trials", _labels(history, series, point), len(point.values))
    yield from _family("dnsrig_change_percent", "median after a change point, in percent of that before")
    for series in history.series:
        for change in series.changes:
            if change.comparison.percent is not None:
                labels = _labels(history, series, change.first) | {"since": change.last.label, "change": change.kind}
                yield _sample("dnsrig_change_percent", labels, change.comparison.percent)


def _samples(history: History, series: Series, point: Point) -> Iterator[str]:
    name, labels = _name(series.metric), _labels(history, series, point, metric=False)
    if (value := median(point)) is not None:
        yield _sample(name, labels | {"statistic": "median"}, value)
    if point.samples.interval is not None:
        yield _sample(name, labels | {"statistic": "low"}, point.samples.interval.low)
        yield _sample(name, labels | {"statistic": "high"}, point.samples.interval.high)


def _name(metric: Metric) -> str:
    return "dnsrig_" + re.sub(r"[^a-zA-Z0-9_]", "_", metric.name)


def _labels(history: History, series: Series, point: Point, *, metric: bool = True) -> dict[str, str]:
    named = {"metric": series.metric.name} if metric else {}
    return {
        "experiment": history.experiment,
        "kind": series.kind,
        "parameters": " ".join(f"{name}={value}" for name, value in series.parameters.items()),
        "version": point.label,
        "commit": point.version.commit,
        **named,
    }


def _family(name: str, help_text: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    yield f"# HELP {name} {_escaped(help_text)}"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
