"""What flame graphs share: where the frames of stacks lie, and how they are drawn (Gregg, ACM Queue 14(2), 2016)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import altair as alt
import polars as pl

from dnsrig.report import figures
from dnsrig.report.charts import _look

LEAST_PERCENT = 0.5
"""Share of the samples below which a frame is too narrow to be seen."""
MOST_DEPTH = 80
"""Frames above each other; a folded file has no end that we could trust."""
WIDTH_PX = _look.WIDTH + 120
"""There are no labels beside it."""
ROW_PX = 15
MOST_PX = 380
"""Height of a panel: all functions are on one screen. The rows of deeper stacks are lower."""
CHARACTER_PX = 6
"""Approximate width of a character in the size of the labels."""
FEWEST_CHARACTERS = 4
"""A label cut shorter than this says nothing."""


@dataclass(frozen=True)
class Frame:
    """A rectangle: from where to where, in percent of the samples."""

    stack: tuple[str, ...]
    """What called it, the outermost first, and itself."""
    start: float
    end: float
    other: float = 0.0
    """Its width in percent of the other samples, where there are any to compare with."""

    @property
    def name(self) -> str:
        return self.stack[-1]

    @property
    def depth(self) -> int:
        return len(self.stack) - 1


@dataclass(frozen=True)
class Look:
    """How a frame is filled and edged."""

    fill: str
    opacity: float = 1.0
    edge: str = _look.PAPER


PLAIN = Look(_look.GRID)


@dataclass
class _Node:
    """A frame at one place of the stacks: the samples that it was in, the other ones, and what it called."""

    count: int = 0
    other: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


def layout(stacks: Mapping[str, int], other: Mapping[str, int] | None = None) -> list[Frame]:
    """The frames of ``stacks`` that are wide enough to be seen, callers first."""
    root = _Node()
    for stack, count in stacks.items():
        for node in _places(root, stack):
            node.count += count
    for stack, count in (other or {}).items():
        for node in _places(root, stack):
            node.other += count
    return list(_placed(root, (), 0.0, 100 / root.count, 100 / max(1, root.other))) if root.count else []


def _places(root: _Node, stack: str) -> Iterator[_Node]:
    node = root
    yield node
    for name in stack.split(";")[:MOST_DEPTH]:
        node = node.children.setdefault(name, _Node())
        yield node


def _placed(node: _Node, stack: tuple[str, ...], start: float, percent: float, other_percent: float) -> Iterator[Frame]:
    """The frames that ``node`` called; a sample is worth ``percent``."""
    for name, child in sorted(node.children.items()):
        end = start + child.count * percent
        if end - start >= LEAST_PERCENT:
            yield Frame((*stack, name), start, end, child.other * other_percent)
            yield from _placed(child, (*stack, name), start, percent, other_percent)
        start = end


def panel(
    frames: Sequence[Frame], title: str, look: Callable[[Frame], Look], most_px: int = MOST_PX
) -> alt.LayerChart | alt.FacetChart:
    """The frames on an axis called ``title``, each as ``look`` says, with as much of its name as fits."""
    # Those with an edge of their own are drawn last, so that no neighbour covers it.
    looks = sorted(set(map(look, frames)), key=lambda each: (each.edge != _look.PAPER, each.fill, each.opacity))
    rows = pl.DataFrame(
        [
            {
                "start": round(frame.start, 3),
                "end": round(frame.end, 3),
                "middle": round((frame.start + frame.end) / 2, 3),
                "bottom": frame.depth,
                "top": frame.depth + 1,
                "height": frame.depth + 0.5,
                "label": label(frame.name, frame.end - frame.start),
                "look": looks.index(look(frame)),
            }
            for frame in frames
        ]
    )
    depth = max((frame.depth + 1 for frame in frames), default=1)
    axis = alt.Axis(tickCount=10, grid=False)
    x = alt.X("start:Q", title=title, scale=alt.Scale(domain=[0, 100], nice=False), axis=axis)
    y = alt.Y("bottom:Q", title=None, scale=alt.Scale(domain=[0, depth], nice=False), axis=None)
    base = alt.Chart(rows)
    layers = [
        base.transform_filter(alt.datum.look == number)
        .mark_rect(color=each.fill, fillOpacity=each.opacity, stroke=each.edge, strokeWidth=1)
        .encode(x, y, alt.X2("end:Q"), alt.Y2("top:Q"))
        for number, each in enumerate(looks)
    ]
    size = min(10, int(0.67 * most_px / depth))
    words = base.transform_filter(alt.datum.label != "").mark_text(fontSize=size, color=_look.INK)
    layers.append(words.encode(alt.X("middle:Q"), alt.Y("height:Q"), alt.Text("label:N")))
    return alt.layer(*layers).properties(width=WIDTH_PX, height=min(most_px, depth * ROW_PX))


def label(name: str, percent: float) -> str:
    """The part of the name that fits on a frame of ``percent`` of the width; empty if nothing useful is left."""
    fits = int(percent / 100 * WIDTH_PX / CHARACTER_PX) - 1
    seen = figures.visible(name)
    if len(seen) <= fits:
        return seen
    return f"{seen[: fits - 1]}…" if fits > FEWEST_CHARACTERS else ""
