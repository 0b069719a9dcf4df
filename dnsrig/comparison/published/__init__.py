"""The figures that the sources published, and what a run measured of the same.

``figures.csv`` has one figure a row, with the source's numbers only; ``sources.csv`` names the sources. ``kind`` says
what the numbers are: ``about`` a value; ``spread`` a value and the low..high around it; ``range`` low..high;
``at-most`` and ``at-least`` a bound.

A module of this folder is named after a source. Its functions with ``@holds`` compute what a run has of a figure, one
`Measured` a server; a run that was not asked for what they need yields nothing. Its function with ``@beside`` yields
the figures that a chart of a metric shows beside the variants of a run. To add a source, add its rows and its file.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal

from dnsrig import discovery
from dnsrig.comparison.summary import VariantRow
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Bound, PercentSpread, Spread

Kind = Literal["about", "spread", "range", "at-most", "at-least"]
SAME_SIZE = 0.05
"""Share by which a size or a rate may differ from a source's and still be called the same."""


@dataclass(frozen=True)
class Source:
    id: str
    author: str
    title: str
    year: int
    says: str
    """What it states about its machine and software, or that it states nothing."""


@dataclass(frozen=True)
class Figure:
    """One published figure."""

    source: Source
    experiment: str
    variant: str
    metric: str
    kind: Kind
    value: float | None
    low: float | None
    high: float | None
    unit: str
    note: str


@dataclass(frozen=True)
class Measured:
    """What a run has of a published figure, in that figure's unit."""

    figure: Figure
    subject: str
    """The server, and whatever else sets it apart."""
    values: Spread | PercentSpread | None
    """None where it was asked for and no repeat counts: `differs` says why."""
    bound: Bound = ""
    """Trials that hit their limit are in it: the true value is at least, or at most, this."""
    comparable: bool = True
    """Whether it was measured at the size of the source's and under its conditions, so that one may lie within the
    other's range."""
    differs: list[str] = field(default_factory=list)
    """How it was measured differently, a sentence each."""

    @property
    def middle(self) -> tuple[str, float]:
        """``median`` or ``mean``, and its value: what can lie within a published range or not."""
        assert self.values is not None
        if isinstance(self.values, Spread):
            return "median", self.values.median
        return "mean", self.values.mean


@dataclass(frozen=True)
class Beside:
    """A published figure to show beside one variant in a chart of ``metric``."""

    variant: Variant
    metric: str
    figure: Figure
    extrapolated: Callable[[float], float] | None = None
    """A measured value at the size of the source; None if the size is the same."""


def left_out(row: VariantRow) -> list[str]:
    """A sentence each for repeats that are in no figure, so that a reader sees that they were asked for."""
    failed, invalid, total = row.outcomes["server-failed"], row.outcomes["invalid"], row.outcomes.total()
    said = [f"In {failed} of {total} repeats a server failed; these are not in the figure."] if failed else []
    return [*said, f"{invalid} of {total} repeats were invalid; these are not in the figure."] if invalid else said


def same_size(here: float, there: float) -> bool:
    return abs(here - there) <= SAME_SIZE * there


Hold = Callable[[Run, Figure], Iterable[Measured]]
_holds: dict[tuple[str, str, str], tuple[str, Hold]] = {}


def holds(metric: str, experiment: str, *variants: str, run_of: str = "") -> Callable[[Hold], Hold]:
    """Register what computes ``metric`` of these published variants from a run of the experiment ``run_of``."""

    def register(function: Hold) -> Hold:
        for variant in variants:
            _holds[experiment, variant, metric] = (run_of or experiment, function)
        return function

    return register


Shows = Callable[[Run], Iterable[Beside]]
_beside: list[Shows] = []


def beside(function: Shows) -> Shows:
    """Register what yields the figures of a source to show beside the variants of a run."""
    _beside.append(function)
    return function


def figures_beside(run: Run, metrics: Container[str]) -> list[Beside]:
    """The published figures to show in a chart of ``metrics`` of ``run``."""
    discovery.modules(__name__)
    return [found for function in _beside for found in function(run) if found.metric in metrics]


@cache
def sources() -> dict[str, Source]:
    rows = _rows("sources.csv")
    return {r["source"]: Source(r["source"], r["author"], r["title"], int(r["year"]), r["says"]) for r in rows}


@cache
def figures() -> list[Figure]:
    """All published figures, in the order of the file."""
    known = sources()
    return [
        Figure(
            source=known[row["source"]],
            experiment=row["experiment"],
            variant=row["variant"],
            metric=row["metric"],
            kind=row["kind"],  # type: ignore[arg-type]
            value=_number(row["value"]),
            low=_number(row["low"]),
            high=_number(row["high"]),
            unit=row["unit"],
            note=row["note"],
        )
        for row in _rows("figures.csv")
    ]


def held_against(run: Run) -> list[Measured]:
    """What ``run`` has of published figures, in the order of the file."""
    discovery.modules(__name__)
    found: list[Measured] = []
    for figure in figures():
        experiment, hold = _holds.get((figure.experiment, figure.variant, figure.metric), ("", None))
        if hold is not None and experiment == run.manifest.experiment:
            found += hold(run, figure)
    if all(spec.family == "ipv6" for spec in run.manifest.specs.values()):
        for one in found:
            one.differs.append("Measured over IPv6 here.")
    return found


def _rows(name: str) -> Sequence[dict[str, str]]:
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _number(text: str) -> float | None:
    return float(text) if text else None
