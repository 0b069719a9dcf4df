"""A chart drawn again for a given room: its panels become smaller, its letters do not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from dnsrig.report import svg

Spec = dict[str, Any]
LEAST = 0.3
"""Of the usual width or height of a panel: below it there is nothing to see in it."""
LABEL_SHARE = 0.3
"""How much of the width the labels of an axis may take."""
LEGEND_ENTRY_PX = 170
SIDES = {"width": ("hconcat", "vconcat"), "height": ("vconcat", "hconcat")}
"""Side -> in which composition it adds up, and in which the largest counts."""


def fitted(spec: Spec, width: float, height: float) -> str:
    """``spec`` as an SVG document of at most ``width`` × ``height`` CSS pixels, if its panels bear that."""
    spec = copy.deepcopy(spec)
    text = svg.render_spec(spec)
    if svg.size(text)[0] > width:
        _narrow_words(spec, width)
        text = svg.render_spec(spec)
    for place, (side, room) in enumerate((("width", width), ("height", height))):
        drawn, panels = svg.size(text)[place], _extent(spec, side)
        if drawn > room and panels:
            _scale(spec, side, max(LEAST, 1 - (drawn - room) / panels))
            text = svg.render_spec(spec)
    return text


def _narrow_words(spec: Spec, width: float) -> None:
    """Labels are cut, titles too, and legends have as few columns as fit."""
    config = spec.setdefault("config", {})
    config.setdefault("axis", {})["labelLimit"] = round(LABEL_SHARE * width)
    config.setdefault("legend", {})["columns"] = max(1, int(width // LEGEND_ENTRY_PX))
    for view in _views(spec):
        if isinstance(title := view.get("title"), dict):
            title["limit"] = width


def _views(spec: Spec) -> Iterator[Spec]:
    """``spec`` and every view in it."""
    yield spec
    for composition in ("vconcat", "hconcat", "concat", "layer"):
        for view in spec.get(composition, []):
            yield from _views(view)
    if isinstance(spec.get("spec"), dict):
        yield from _views(spec["spec"])


def _extent(spec: Spec, side: str) -> float:
    """Of all panels together along ``side``, without what lies around and between them."""
    adds, largest = SIDES[side]
    if adds in spec:
        return sum(_extent(view, side) for view in spec[adds])
    if largest in spec:
        return max((_extent(view, side) for view in spec[largest]), default=0.0)
    own = spec.get(side)
    return float(own) if isinstance(own, int | float) else 0.0


def _scale(spec: Spec, side: str, factor: float) -> None:
    for view in _views(spec):
        if isinstance(own := view.get(side), int | float):
            view[side] = round(factor * own)
