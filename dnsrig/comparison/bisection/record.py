"""``bisect.json``: what a search looks for, and what it could not measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from dnsrig.comparison.bisection.state import Limits
from dnsrig.comparison.criterion import Criterion
from dnsrig.rundir import SCHEMA_VERSION, SEARCH_FILE, Record, Scalar


class Candidate(Record):
    """One of the commits, or of what takes their place."""

    value: Scalar
    """As an experiment says it, e.g. ``bind@git:HASH``."""
    name: str
    """As people call it: a tag, or the beginning of its hash. No two have the same."""
    subject: str = ""
    """The first line of its message: untrusted text."""


class Search(Record):
    """All but the trials, which are the run's."""

    schema_version: int = SCHEMA_VERSION
    candidates: list[Candidate] = Field(min_length=2)
    """The first is the good end, the last the bad one."""
    path: str
    """What of the experiment they are: ``hosts.secondary.server``."""
    document: dict[str, Any]
    """The experiment without a matrix, as each candidate changes it."""
    criterion: Criterion
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    seed: int
    """Of the order of trials in each round, and of the choice among neighbours."""
    failed: dict[int, str] = Field(default_factory=dict)
    """Position of a candidate -> why it cannot be measured."""


def path(directory: Path) -> Path:
    return directory / SEARCH_FILE
