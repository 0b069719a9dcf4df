"""What differential flame graphs share (B. Gregg, Differential Flame Graphs, 2014): how a frame shows that it is wider
than in another profile, and the functions that differ, by name."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from dnsrig.report import figures
from dnsrig.report.charts import _flames, _look
from dnsrig.runs.profile import Difference

SHADES = ((30.0, 0.75), (10.0, 0.45), (2.0, 0.2))
"""Least points of difference -> opacity; below the last, a frame has its usual look."""
MORE, LESS = _look.COLOURS[1], _look.COLOURS[0]
STEPS = f"{SHADES[-1][0]:g}, {SHADES[1][0]:g}, {SHADES[0][0]:g} points and more"


def look(more: float, *, named: bool = False) -> _flames.Look:
    """The look of a frame whose share is ``more`` percentage points larger; ``named``: it is in the list of
    functions."""
    shade = next((opacity for least, opacity in SHADES if abs(more) >= least), 0.0)
    fill, opacity = (MORE if more > 0 else LESS, shade) if shade else (_look.GRID, 1.0)
    return _flames.Look(fill, opacity, _look.INK if named else _look.PAPER)


def functions(first: Sequence[Difference], kinds: Sequence[str]) -> alt.LayerChart | alt.FacetChart:
    """Their own shares in both profiles, which ``kinds`` names."""
    rows = pl.DataFrame(
        [
            {
                "function": figures.visible(each.name),
                "when": when,
                "percent": 100 * share,
                "text": f"{share:.0%} ({count:,} of {of:,})",
            }
            for each in first
            for when, share, count, of in (
                (kinds[0], each.share, each.itself, each.samples),
                (kinds[1], each.other_share, each.other_itself, each.other_samples),
            )
        ]
    )
    x = alt.X(
        "percent:Q", title="percent of the samples in which it ran itself", scale=alt.Scale(domain=[0, 125], nice=False)
    )
    x = x.axis(values=[0, 20, 40, 60, 80, 100])
    y = alt.Y("function:N", title=None, sort=[figures.visible(each.name) for each in first])
    offset = alt.YOffset("when:N", sort=list(kinds))
    base = alt.Chart(rows)
    colour = alt.Color("when:N", scale=alt.Scale(domain=list(kinds), range=[MORE, _look.MUTED]))
    bars = base.mark_bar().encode(x, y, offset, colour)
    words = base.mark_text(align="left", dx=4, fontSize=10, color=_look.INK).encode(x, y, offset, alt.Text("text:N"))
    return alt.layer(bars, words).properties(width=_look.WIDTH - 60, height=alt.Step(13))
