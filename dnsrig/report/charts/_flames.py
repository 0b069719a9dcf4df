"""What flame graphs share: how wide, how deep, and how much of a name fits on a frame."""

from __future__ import annotations

from dnsrig.report import figures
from dnsrig.report.charts import _look

LEAST_PERCENT = 0.5
"""Of the samples: a narrower frame could not be seen."""
MOST_DEPTH = 80
"""Frames above each other; a folded file has no end that we could trust."""
WIDTH_PX = _look.WIDTH + 120
"""There are no labels beside it."""
ROW_PX = 15
CHARACTER_PX = 6
"""Of a name in the size of the labels, about."""
FEWEST_CHARACTERS = 4
"""A label cut shorter than this says nothing."""


def label(name: str, percent: float) -> str:
    """As much of the name as fits on a frame of ``percent`` of the width; empty if that says nothing."""
    fits = int(percent / 100 * WIDTH_PX / CHARACTER_PX) - 1
    seen = figures.visible(name)
    if len(seen) <= fits:
        return seen
    return f"{seen[: fits - 1]}…" if fits > FEWEST_CHARACTERS else ""
