"""What failed while a run was examined and drawn: each part by itself, so that the rest goes on without it."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import polars as pl

import dnsrig
from dnsrig.rundir import Failure, TrialKey

Part = Literal["metric", "trap", "chart", "export", "section"]
RAISED = (Exception, pl.exceptions.PanicException)
"""What a failing part may raise; a panic of polars is no Exception."""
_PACKAGE = Path(dnsrig.__file__).parent
_LIBRARIES = {"altair", "hdrh", "jinja2", "polars", "pydantic"}


class Failures:
    """Collects them; the same one of many trials is one entry."""

    def __init__(self) -> None:
        self._found: dict[tuple[Part, str, str], Failure] = {}
        self.damaged: dict[str, None] = {}
        """Descriptions of damaged files because of which a metric has no value."""

    def __iter__(self) -> Iterator[Failure]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def add(self, part: Part, name: str, error: BaseException, trial: TrialKey | None = None) -> str:
        """Note that ``part`` raised ``error``; returns the description of the error."""
        told = describe(error)
        entry = self._found.setdefault((part, name, told), Failure(part=part, name=name, error=told))
        if trial is not None and trial not in entry.trials:
            entry.trials.append(trial)
        return told

    @contextlib.contextmanager
    def isolate(self, part: Part, name: str) -> Iterator[None]:
        """Whatever is raised within is noted, and ends no more than what is within."""
        try:
            yield
        except RAISED as error:
            self.add(part, name, error)


def describe(error: BaseException) -> str:
    """``ZeroDivisionError: division by zero (dnsrig/traps/slow.py, line 33)``: the deepest line that is not a
    library's."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()
    line = said[0] if said else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _LIBRARIES.isdisjoint(Path(frame.filename).parts)]
    if not frames:
        return line
    place = (own or frames)[-1]
    path = Path(place.filename)
    where = path.relative_to(_PACKAGE.parent) if _PACKAGE in path.parents else path.name
    return f"{line} ({where}, line {place.lineno})"
