"""JSON of github-action-benchmark, as its tools customSmallerIsBetter and customBiggerIsBetter read it: a file of each
for each version.

``[{name, unit, value, range, extra}]``. The value is the median; the range is how far the further end of its 95 %
interval lies from it. A metric of which neither more nor less is better has no place there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dnsrig.comparison.history import History, Point, Series
from dnsrig.report.history_exports import benchmark, by_version, median, write_json
from dnsrig.text import digits

FILES = {"lower": "smaller-is-better", "higher": "bigger-is-better"}


def write(history: History, out: Path) -> list[Path]:
    written = []
    for name, points in by_version(history):
        for better, file in FILES.items():
            of_file = [(s, p) for s, p in points if s.metric.better == better and median(p) is not None]
            if of_file:
                entries = [_entry(history, series, point) for series, point in of_file]
                written.append(write_json(out / f"{name}.{file}.json", entries))
    return written


def _entry(history: History, series: Series, point: Point) -> dict[str, Any]:
    value, interval = median(point), point.samples.interval
    assert value is not None
    extra = [f"{len(point.values)} trials", point.version.server.label]
    extra += [f"commit {point.version.commit}"] if point.version.commit else []
    entry: dict[str, Any] = {
        "name": f"{benchmark(history, series)}: {series.metric.name}",
        "unit": series.metric.unit,
        "value": value,
    }
    if interval:
        entry["range"] = f"± {digits(max(value - interval.low, interval.high - value), 4).replace(',', '')}"
    return entry | {"extra": "\n".join(extra)}
