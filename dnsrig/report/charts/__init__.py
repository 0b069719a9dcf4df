"""Charts of a run, drawn once as SVG, embedded in the page and exported. `chosen` says which a report has.

A chart that draws something of its own is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``TITLE``: a few words; ``ORDER``: its place on the page, small numbers first,
- ``METRICS``: the metrics it shows, so that findings about them are beside it; ``MAIN`` is the procedure's,
- ``applies(run) -> bool``,
- ``draw(run) -> list[Drawing]``, or ``explain(run, findings) -> list[Drawing]`` if it says what traps found,
- ``caption(run) -> str``: what to look for, and what the picture leaves out.

Charts that differ only in what they are drawn of are entries of a module's table ``CHARTS``, as in `metric_by_axis`,
`percentiles` and `time_series`. A module whose name begins with an underscore is not a chart but what charts share.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import altair as alt

from dnsrig import discovery
from dnsrig.comparison.summary import main_metric
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

MAIN = "the main metric"
"""In ``METRICS``: whichever metric answers the run's question."""


@dataclass(frozen=True)
class Drawing:
    """One picture of a chart."""

    name: str
    """Unique within the chart; part of a file name."""
    chart: alt.VConcatChart
    title: str = ""
    group: str = ""
    """Drawings with the same group are folded away together under this heading; empty: always in sight."""
    open: bool = False
    """Whether its group is unfolded at first."""


@dataclass(frozen=True)
class Chart(ABC):
    id: str
    title: str
    order: int
    shows: tuple[str, ...]
    """The metrics it shows."""

    @abstractmethod
    def applies(self, run: Run) -> bool: ...

    @abstractmethod
    def caption(self, run: Run) -> str: ...

    @abstractmethod
    def draw(self, run: Run, findings: Sequence[Finding]) -> list[Drawing]: ...

    def metrics(self, run: Run) -> set[str]:
        """What it shows of ``run``."""
        return {main_metric(run) if name == MAIN else name for name in self.shows}


@dataclass(frozen=True)
class ModuleChart(Chart):
    """The one chart of a module."""

    module: ModuleType

    def applies(self, run: Run) -> bool:
        return bool(self.module.applies(run))

    def caption(self, run: Run) -> str:
        return str(self.module.caption(run))

    def draw(self, run: Run, findings: Sequence[Finding]) -> list[Drawing]:
        explain = getattr(self.module, "explain", None)
        drawings: list[Drawing] = self.module.draw(run) if explain is None else explain(run, findings)
        return drawings


def chosen(run: Run) -> list[Chart]:
    """The charts of the report of ``run``: those that have something to draw, in the order of the page. One that raises
    is left out and told."""
    found = []
    for chart in all_charts():
        with run.failures.isolate("chart", chart.id):
            found += [chart] if chart.applies(run) else []
    return found


@cache
def all_charts() -> list[Chart]:
    """Every chart, in the order of the page."""
    found = discovery.plugins(__name__, _charts)
    return sorted(itertools.chain.from_iterable(found.values()), key=lambda chart: (chart.order, chart.id))


def _charts(name: str, module: ModuleType) -> list[Chart]:
    several: list[Chart] = getattr(module, "CHARTS", [])
    return several or [ModuleChart(name, module.TITLE, module.ORDER, tuple(module.METRICS), module)]
