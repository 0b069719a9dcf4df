"""The consoles that commands print on: text from outside is shown unchanged.

rich would read ``[off]`` in a value as markup and drop it, stop at ``[/off]``, and turn ``:snowflake:`` into a picture.
Our own text has no markup either: bold text is a `rich.text.Text` with a style.
"""

from __future__ import annotations

import json
import math
from typing import Any

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


def print_document(found: Any) -> None:
    """Print ``found`` on standard output as one JSON document."""
    print(json.dumps(_finite(found), indent=2, allow_nan=False), flush=True)


def _finite(found: Any) -> Any:
    """The same, with None for infinity and for what is not a number: JSON has neither."""
    if isinstance(found, dict):
        return {key: _finite(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_finite(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found
