"""The consoles that commands print on: text from outside is shown unchanged.

rich would read ``[off]`` in a value as markup and drop it, stop at ``[/off]``, and turn ``:cold:`` into a picture. Our
own text has no markup either: bold text is a `rich.text.Text` with a style.
"""

from __future__ import annotations

from rich.console import Console


def out() -> Console:
    """Standard output: data."""
    return Console(highlight=False, markup=False, emoji=False)


def err(*, soft_wrap: bool = False) -> Console:
    """Standard error: progress and prose."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)


def progress(quiet: bool) -> Console:
    """Standard error for what a command does at the moment: silent if ``quiet``. Errors have a console of their own."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, quiet=quiet)


def prose(as_json: bool) -> Console:
    """Where sentences and tables go: standard error if standard output is one JSON document."""
    return err() if as_json else out()
