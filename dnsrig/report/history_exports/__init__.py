"""A history for other programs that follow benchmarks over time: one file a format.

A format is a module of this folder, or of another package (`dnsrig.discovery`), with ``write(history, out) ->
list[Path]``. ``out`` is an empty folder; what is written there is moved to where the user wants it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dnsrig import discovery, files
from dnsrig.comparison.history import History, Point, Series
from dnsrig.errors import UsageError
from dnsrig.text import visible


@cache
def formats() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("write"))


def check(format: str) -> None:
    if format not in formats():
        raise UsageError(f"there is no format {format!r} of a history", hint=f"choose one of {', '.join(formats())}")


def export(history: History, format: str, out: Path, inside: Path | None = None) -> list[Path]:
    """Write ``history`` as ``format`` into the folder ``out``, made if need be; returns what was written. ``inside``:
    as in `dnsrig.files.filling`."""
    check(format)
    with files.filling(out, inside) as made:
        return [out / path.relative_to(made) for path in formats()[format].write(history, made)]


def benchmark(history: History, series: Series) -> str:
    """What a series is called elsewhere: experiment, kind of server, parameters."""
    return visible(f"{history.experiment} {series.label}")


def median(point: Point) -> float | None:
    """None without one, or where it is only known to be at least so much: no format here can say that."""
    spread = point.samples.spread
    bounds = point.samples.bounds
    return None if spread is None or (bounds and spread.median >= min(bounds)) else spread.median


def file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")


def by_version(history: History) -> Iterator[tuple[str, list[tuple[Series, Point]]]]:
    """Each version that was measured, as the name of a file in the order of versions, with its points.

    Kinds of servers are versions of their own.
    """
    found: dict[tuple[str, ...], list[tuple[Series, Point]]] = {}
    for series in history.series:
        for point in series.points:
            found.setdefault(point.version.id, []).append((series, point))
    for number, points in enumerate(found.values(), start=1):
        series, point = points[0]
        yield file_name(f"{number:03}-{series.kind}-{point.label}"), points


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path
