"""A chart drawn again for a given room: its panels become smaller, its letters do not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dnsrig.report import svg

Spec = dict[str, Any]
LEAST = 0.3
"""Smallest share of a panel's usual width or height: a smaller panel shows nothing."""
SLACK_PX = 12
"""Beyond the room: a browser makes the whole drawing smaller by as much, which no eye sees."""
LABEL_SHARE = 0.36
"""Share of the width that the labels of an axis may take."""
LEGEND_ENTRY_PX = 170
TWO_LINES_PX = 26
"""Least height of a row whose label has two lines."""
PARTS, HALF = "split(datum.label, ' · ')", "ceil(length(split(datum.label, ' · ')) / 2)"
BROKEN = (
    f"length({PARTS}) < 2 ? datum.label : [join(slice({PARTS}, 0, {HALF}), ' · '), join(slice({PARTS}, {HALF}), ' · ')]"
)
"""Expression of Vega: a label of several parts in two lines. A row has no room for more."""
SIDES = {"width": ("hconcat", "vconcat"), "height": ("vconcat", "hconcat")}
"""Side -> the composition in which it adds up, and the one in which the largest counts."""


@dataclass(frozen=True)
class Fitted:
    svg: str
    fits: bool
    """Whether it has the room that it needs: no panels side by side, none of them tiny, nothing beyond the edges."""


def fitted(spec: Spec, width: float, height: float) -> Fitted:
    """``spec`` as an SVG document of at most ``width`` × ``height`` CSS pixels, if its panels bear that."""
    spec = copy.deepcopy(spec)
    text, least = svg.render_spec(spec), 1.0
    if svg.size(text)[0] > width:
        _narrow_words(spec, width)
        text = svg.render_spec(spec)
    for place, (side, room) in enumerate((("width", width), ("height", height))):
        drawn, panels = svg.size(text)[place], _extent(spec, side)
        if drawn > room and panels:
            factor = max(LEAST, 1 - (drawn - room) / panels)
            _scale(spec, side, factor)
            text, least = svg.render_spec(spec), min(least, factor)
    wide, high = svg.size(text)
    alone = all(len(view.get("hconcat", ())) <= 1 for view in _views(spec))
    return Fitted(text, alone and least > LEAST and wide <= width + SLACK_PX and high <= height + SLACK_PX)


def _narrow_words(spec: Spec, width: float) -> None:
    """Break labels at a dot, cut what is still too long, and give legends no more columns than fit."""
    config = spec.setdefault("config", {})
    config.setdefault("axis", {})["labelLimit"] = round(LABEL_SHARE * width)
    config.setdefault("legend", {})["columns"] = max(1, int(width // LEGEND_ENTRY_PX))
    for view in _views(spec):
        if isinstance(title := view.get("title"), dict):
            title["limit"] = width
        row = view.get("encoding", {}).get("y", {})
        if row.get("type") == "nominal" and isinstance(row.get("axis"), dict):
            row["axis"].setdefault("labelExpr", BROKEN)


def _views(spec: Spec) -> Iterator[Spec]:
    """``spec`` and every view in it."""
    yield spec
    for composition in ("vconcat", "hconcat", "concat", "layer"):
        for view in spec.get(composition, []):
            yield from _views(view)
    if isinstance(spec.get("spec"), dict):
        yield from _views(spec["spec"])


def _extent(spec: Spec, side: str) -> float:
    """The size of all panels together along ``side``, without labels and gaps."""
    adds, largest = SIDES[side]
    if adds in spec:
        return sum(_extent(view, side) for view in spec[adds])
    if largest in spec:
        return max((_extent(view, side) for view in spec[largest]), default=0.0)
    own = spec.get(side)
    if isinstance(own, dict) and side == "height":
        return float(own["step"] * _rows(spec))
    return float(own) if isinstance(own, int | float) else 0.0


def _rows(spec: Spec) -> int:
    """How many rows a panel has whose height is given by row."""
    domains = (view.get("encoding", {}).get("y", {}).get("scale", {}).get("domain") for view in _views(spec))
    return max((len(domain) for domain in domains if domain), default=0)


def _scale(spec: Spec, side: str, factor: float) -> None:
    for view in _views(spec):
        own = view.get(side)
        if isinstance(own, int | float):
            view[side] = round(factor * own)
        elif isinstance(own, dict) and side == "height":
            step = max(factor * own["step"], TWO_LINES_PX if _has_two_lines(view) else 0)
            view[side] = {"step": step}
            for layer in _views(view):
                _scale_in_row(layer, step / own["step"])


def _has_two_lines(panel: Spec) -> bool:
    """Whether labels of rows are broken at a dot."""
    rows = [view.get("encoding", {}).get("y", {}) for view in _views(panel)]
    return any(
        (row.get("axis") or {}).get("labelExpr") == BROKEN
        and any(" · " in str(label) for label in row.get("scale", {}).get("domain", ()))
        for row in rows
    )


def _scale_in_row(view: Spec, factor: float) -> None:
    """Scale what is drawn in a row: bars, ticks, and the range over which marks are spread."""
    mark = view.get("mark")
    if isinstance(mark, dict) and (side := {"bar": "height", "tick": "size"}.get(mark["type"])) in mark:
        mark[side] *= factor
    scale = view.get("encoding", {}).get("yOffset", {}).get("scale", {})
    if "range" in scale:
        scale["range"] = [factor * end for end in scale["range"]]
