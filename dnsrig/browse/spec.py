"""What a Vega-Lite specification consists of: a tree of concatenations of panels; a panel is a unit (one mark) or a
layer of units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Spec = dict[str, Any]

CONCATS = ("vconcat", "hconcat", "concat")
PARTS = (*CONCATS, "layer")


class Rows:
    """The data of a specification: named datasets, or values in place."""

    def __init__(self, spec: Spec) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = spec.get("datasets", {})

    def of(self, unit: Spec) -> list[dict[str, Any]]:
        data = unit.get("data") or {}
        found: list[dict[str, Any]] = data.get("values") or self._datasets.get(data.get("name", ""), [])
        return found

    def values(self, unit: Spec, field: str) -> list[float]:
        """The numbers in a column."""
        return [row[field] for row in self.of(unit) if isinstance(row.get(field), int | float)]


def hand_down(spec: Spec, data: Spec | None = None) -> None:
    """Data of a concatenation or a layer to each of its units, where they are looked for."""
    own = spec.get("data", data)
    inner = next((spec[name] for name in PARTS if name in spec), None)
    if inner is None:
        if own is not None:
            spec["data"] = own
        return
    for each in inner:
        hand_down(each, own)


def panels(spec: Spec) -> Iterator[Spec]:
    inner = next((spec[name] for name in CONCATS if name in spec), None)
    if inner is None:
        yield spec
        return
    for each in inner:
        yield from panels(each)


def units(panel: Spec) -> Iterator[Spec]:
    """The rows of a panel."""
    if "layer" not in panel:
        if "mark" in panel:
            yield panel
        return
    for each in panel["layer"]:
        yield from units(each)


def all_units(spec: Spec) -> Iterator[Spec]:
    """The rows of all panels."""
    for panel in panels(spec):
        yield from units(panel)


def mark_of(unit: Spec) -> str:
    mark = unit["mark"]
    return str(mark if isinstance(mark, str) else mark["type"])


def marked(unit: Spec) -> Spec:
    """The mark of a unit, as something to add to."""
    if isinstance(unit["mark"], str):
        unit["mark"] = {"type": unit["mark"]}
    mark: Spec = unit["mark"]
    return mark
