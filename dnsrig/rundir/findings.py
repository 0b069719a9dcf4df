"""The findings of a run, as the traps conclude them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dnsrig.rundir.base import SCHEMA_VERSION, Record, Scalar, Verdict
from dnsrig.rundir.manifest import TrialKey


class Finding(Record):
    """Conclusion of a trap about one subject."""

    trap: str
    verdict: Verdict
    variant: str | None = None
    """None: the whole run."""
    repeat: int | None = None
    """None: all repeats of the variant."""
    summary: str
    """One sentence with the numbers. For `clear` it is empty, or about another trap."""
    evidence: dict[str, Scalar | None] = Field(default_factory=dict)
    """Name (unit last) -> number."""
    series: list[str] = Field(default_factory=list)
    """Series of samples.arrow that show it, as ``host/source/metric``."""
    metrics: list[str] = Field(default_factory=list)
    """Metrics that it concerns. It is shown beside them."""
    remedy: str = ""
    source: str = ""


class Failure(Record):
    """A part of dnsrig, or of a package that extends it, that raised an exception. The other parts continued."""

    part: Literal["metric", "trap", "chart", "export", "section"]
    name: str
    error: str
    """The exception, and the line that raised it."""
    trials: list[TrialKey] = Field(default_factory=list)
    """Trials with which it failed; empty for a part that reads the whole run."""


class Findings(Record):
    schema_version: int = SCHEMA_VERSION
    findings: list[Finding]
    failures: list[Failure] = Field(default_factory=list)
