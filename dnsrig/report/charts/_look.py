"""How charts look: one palette, one configuration, one width.

Charts are drawn with literal colours. The neutral colours are named in ``NEUTRALS``, and the page maps each to
a variable of its style sheet, so a chart follows the reader's light or dark mode. Data colours are the same in both
modes. They have the hues of Okabe and Ito (Color Universal Design, 2008), and their lightness is chosen so that each
has a contrast of 3:1 against both backgrounds, any two differ for deuteranopic eyes, and no two are the same grey in
print: `tests/unit/test_palette.py` computes all three. Wherever colour tells things apart, a shape or a dash does so,
too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from dnsrig.report import figures

WIDTH = 560
"""Width of the plotting area of a whole chart, in CSS pixels; with labels about 700."""

PAPER = "#fffffe"
INK = "#1c1e21"
MUTED = "#5f6672"
GRID = "#dfe2e7"
NEUTRALS = {"paper": PAPER, "ink": INK, "muted": MUTED, "grid": GRID}
"""Variable of the style sheet -> the literal that a drawing has in its place."""

COLOURS = ("#0367b6", "#e06603", "#02895e", "#c65a9d", "#836d15", "#389dc9")
"""Blue, vermilion, green, purple, ochre, sky blue."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")
DASHES = ([1, 0], [8, 3], [2, 2], [9, 3, 2, 3], [16, 4], [9, 3, 2, 3, 2, 3], [4, 6])
"""One more than there are colours: with more names than colours, the same colour has another dash."""
FLOOR_DASH = [1, 4]
"""Dash of the instrument's floor; no server has it."""

LOG_ABOVE = 30
"""Ratio of the largest to the smallest value above which a linear axis hides the small ones."""

ROOM = 1.05
"""Length of an axis, relative to its largest value."""
LOG_ROOM = 1.3
"""Room of a logarithmic axis (`log_axis`) beyond either end, as a factor: marks at the ends are whole."""

MOST_AT_ENDS, LONGEST_AT_END = 4, 30
"""Lines that have their names at their ends, and the characters of a name."""
NAME_PX, LEAD_PX = 13, 10
"""Between two such names; and the length of what joins a name to its line."""

FONT = "Arial, Liberation Sans, Helvetica, DejaVu Sans Condensed, sans-serif"
"""Fonts; the layout uses the widths of Liberation Sans, which the renderer carries and which equal Arial's."""

OUTCOME_SHAPES = {
    "done": "circle",
    "timeout": "triangle-right",
    "server-failed": "cross",
    "invalid": "diamond",
    "error": "square",
}

MACHINE_SHAPES = (
    *("circle", "square", "triangle-up", "triangle-down", "triangle-left"),
    *("diamond", "cross", "triangle-right"),
)
"""Shapes of machines; shapes without a common outcome come first."""


def colours(names: Sequence[str]) -> alt.Scale:
    """Name -> colour, the same wherever the same names are drawn; the protocol's floor is grey."""
    chosen = [MUTED if name.startswith(figures.FLOOR) else COLOURS[i % len(COLOURS)] for i, name in enumerate(names)]
    return alt.Scale(domain=list(names), range=chosen)


def shapes(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[SHAPES[i % len(SHAPES)] for i in range(len(names))])


def dashes(names: Sequence[str]) -> alt.Scale:
    chosen = [FLOOR_DASH if name.startswith(figures.FLOOR) else DASHES[i % len(DASHES)] for i, name in enumerate(names)]
    return alt.Scale(domain=list(names), range=list(map(list, chosen)))


def extent(values: pl.Series) -> tuple[float, float]:
    """The smallest and the largest of a column of numbers; zeros for an empty one."""
    present = values.drop_nulls().cast(pl.Float64).sort()
    return (present[0], present[-1]) if len(present) else (0.0, 0.0)


def measure(values: pl.Series, title: str) -> tuple[str, alt.Scale]:
    """Title and scale of an axis for ``values``: from zero, unless that would hide the small ones.

    Only then it is logarithmic, and its title says so. The domain is explicit, so panels that share ``values`` match.
    """
    smallest, largest = extent(values)
    if smallest > 0 and largest / smallest > LOG_ABOVE:
        return f"{title} (log scale)", alt.Scale(type="log", domain=[smallest / ROOM, largest * ROOM], nice=False)
    return title, alt.Scale(type="linear", domain=[min(0.0, smallest), largest * ROOM or 1.0], nice=False)


def from_zero(values: pl.Series) -> alt.Scale:
    """A linear scale from zero; of nothing but zeros too."""
    return alt.Scale(domain=[0, ROOM * extent(values)[1] or 1], nice=False)


def log_axis(values: pl.Series, title: str) -> dict[str, Any]:
    """Title, scale and axis of a logarithmic channel for ``values`` above zero.

    It names 1, 2 and 5 of each power of ten; where fewer than two of these lie in it, what the renderer chooses.
    """
    smallest, largest = extent(values)
    low, high = smallest / LOG_ROOM, largest * LOG_ROOM
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    return {"title": f"{title} (log scale)", "scale": scale, "axis": axis_of(scale, 4)}


def axis_of(scale: alt.Scale, ticks: int) -> alt.Axis:
    """An axis for ``scale`` with about so many figures; a logarithmic one as in `log_axis`."""
    low, high = scale["domain"]
    if scale["type"] == "log":
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
        named = [tick for power in powers for step in (1, 2, 5) if low <= (tick := step * 10.0**power) <= high]
        if len(named) > 1:
            return alt.Axis(values=named, format=",~r", labelOverlap="greedy")
    return alt.Axis(tickCount=ticks, format=",~r", labelOverlap="greedy")


def named_at_ends(names: Sequence[str]) -> bool:
    """Whether lines have their names at their right ends, not in a legend: where they are few and short."""
    return 1 < len(names) <= MOST_AT_ENDS and max(map(len, names)) <= LONGEST_AT_END


def at_ends(ends: Mapping[str, float], y: Any, width_px: int, height_px: int, colour: alt.Scale) -> list[alt.Chart]:
    """The name of each line right of the plot, joined to where the line ends: name -> its last value on ``y``."""
    if not ends:
        return []
    scale = y["scale"]
    low, high = scale["domain"]
    logarithmic = scale.to_dict().get("type") == "log"
    to, back = (math.log, math.exp) if logarithmic else (float, float)

    def px(value: float) -> float:
        return (to(min(high, max(low, value))) - to(low)) / (to(high) - to(low)) * height_px

    apart = spread([px(value) for value in ends.values()], height_px)
    field = str(y["shorthand"]).partition(":")[0]
    rows = pl.DataFrame(
        {
            "colour": list(ends),
            field: [back(to(low) + at / height_px * (to(high) - to(low))) for at in apart],
            "end": [min(high, max(low, value)) for value in ends.values()],
        }
    )
    base = alt.Chart(rows)
    lead = base.mark_rule(strokeWidth=1).encode(
        alt.Y("end:Q", scale=scale),
        alt.Y2(f"{field}:Q"),
        alt.Color("colour:N", scale=colour, legend=None),
        x=alt.value(width_px + 1),
        x2=alt.value(width_px + LEAD_PX),
    )
    words = base.mark_text(align="left", dx=3, fontSize=11, color=INK)
    return [lead, words.encode(y, alt.Text("colour:N"), x=alt.value(width_px + LEAD_PX))]


def spread(places_px: Sequence[float], height_px: float) -> list[float]:
    """``places_px`` moved as little as needed to be `NAME_PX` apart within the height, in the same order."""
    order = sorted(range(len(places_px)), key=lambda i: places_px[i])
    found = [0.0] * len(places_px)
    least = 0.0
    for i in order:
        found[i] = least = max(places_px[i], least)
        least += NAME_PX
    most = height_px
    for i in reversed(order):
        found[i] = most = min(found[i], most)
        most -= NAME_PX
    return found


def heading(text: str | list[str]) -> alt.Title:
    """The heading of a panel: small, left, above it."""
    return alt.Title(text, anchor="start", fontSize=12, fontWeight=600, offset=6, color=INK)


def stack(panels: Sequence[Any], spacing: int = 16) -> alt.VConcatChart:
    """``panels`` one below the other, finished with the common configuration."""
    return alt.vconcat(*panels, spacing=spacing, config=_config())


def _config() -> alt.Config:
    """Given at once: each `configure_…` copies the chart with all its data."""
    return alt.Config(
        aria=False,
        background=PAPER,
        font=FONT,
        padding={"left": 4, "right": 10, "top": 4, "bottom": 4},
        axis=alt.AxisConfig(
            gridColor=GRID,
            domainColor=MUTED,
            tickColor=MUTED,
            labelColor=MUTED,
            titleColor=INK,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            labelLimit=240,
            labelSeparation=8,
        ),
        view=alt.ViewConfig(stroke=None),
        legend=alt.LegendConfig(
            orient="bottom",
            title=None,
            labelColor=INK,
            labelFontSize=11,
            labelLimit=300,
            symbolStrokeWidth=2,
            symbolOpacity=1,
            symbolBaseFillColor="transparent",
            symbolBaseStrokeColor=INK,
            columnPadding=16,
            symbolLimit=40,
        ),
    )
