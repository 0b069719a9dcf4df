"""The consoles that commands print on: text from outside is shown as it is.

rich would read ``[off]`` in a value as markup and drop it, or end at ``[/off]``, and turn ``:cold:`` into a picture.
Nothing of ours is marked up in text: what is to be bold is a `rich.text.Text` with a style.
"""

from __future__ import annotations

from rich.console import Console


def out() -> Console:
    """Standard output: data."""
    return Console(highlight=False, markup=False, emoji=False)


def err(*, soft_wrap: bool = False) -> Console:
    """Standard error: progress and prose."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)
