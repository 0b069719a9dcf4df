"""CSV for Apache Otava (Hunter), a file a series with a row a trial, and the configuration that reads them.

Rows are in the order of versions, which is what Otava goes by; ``time`` is when the trial was measured. By itself
Otava looks at the last year: ``--since`` has it look at more. A change that it finds between two trials of one version
lies at neither of its ends. Trials that lack one of the metrics are left out, because a cell must be a number; one that
reached a limit stands with it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from dnsrig.comparison.history import History, Series, Value
from dnsrig.report.history_exports import file_name
from dnsrig.runs.trial import Trial

ATTRIBUTES = ("version", "commit", "run", "repeat")
DIRECTIONS = {"lower": -1, "higher": 1, "neither": 1}


def write(history: History, out: Path) -> list[Path]:
    written: list[Path] = []
    tests: dict[str, object] = {}
    for number, group in enumerate(_of_one_case(history), start=1):
        name = file_name(f"{history.experiment}-{number:02}-{group[0].label}")
        path = out / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_rows(group))
        written.append(path)
        tests[name] = {
            "type": "csv",
            "file": path.name,
            "time_column": "time",
            "attributes": list(ATTRIBUTES),
            "metrics": {
                s.metric.name: {"column": s.metric.name, "direction": DIRECTIONS[s.metric.better], "scale": 1.0}
                for s in group
            },
            "csv_options": {"delimiter": ",", "quote_char": '"'},
        }
    configuration = out / "otava.yaml"  # JSON is YAML
    configuration.write_text(json.dumps({"tests": tests}, indent=2) + "\n", encoding="utf-8")
    return [*written, configuration]


def _of_one_case(history: History) -> list[list[Series]]:
    """The series of all metrics of the same kind and parameters together."""
    found: dict[str, list[Series]] = {}
    for series in history.series:
        found.setdefault(series.label, []).append(series)
    return list(found.values())


def _rows(group: list[Series]) -> Iterator[list[object]]:
    yield ["time", *ATTRIBUTES, *(series.metric.name for series in group)]
    for number, point in enumerate(group[0].points):
        columns = [{id_of(value): value.sample.value for value in series.points[number].values} for series in group]
        for value in point.values:
            cells = [column.get(id_of(value)) for column in columns]
            if None not in cells:
                key, version = value.trial.key, point.version
                told = [_when(value.trial), point.label, version.commit, value.run.manifest.run, key.repeat]
                yield [*told, *cells]


def id_of(value: Value) -> tuple[str, str, int]:
    return (str(value.run.directory), value.trial.key.variant, value.trial.key.repeat)


def _when(trial: Trial) -> str:
    """UTC, ISO 8601, to the second; empty of a trial without phases."""
    anchors = trial.anchors
    return datetime.fromtimestamp(anchors[0].realtime_ns // 10**9, UTC).isoformat() if anchors else ""
