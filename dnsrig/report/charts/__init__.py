"""Charts of a run: one file each, drawn once as SVG, embedded in the page and exported.

A chart is a module of this folder with

- ``TITLE``: a few words; ``ORDER``: its place on the page, small numbers first,
- ``METRICS``: the metrics it shows, so that findings about them stand beside it,
- ``applies(run) -> bool``,
- ``draw(run) -> list[Drawing]``,
- ``caption(run) -> str``: what to look for, and what the picture leaves out.

A module whose name begins with an underscore is not a chart but what charts share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType

import altair as alt

from dnsrig import discovery
from dnsrig.analysis.read import Run


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
class Chart:
    id: str
    title: str
    order: int
    metrics: frozenset[str]
    module: ModuleType

    def applies(self, run: Run) -> bool:
        return bool(self.module.applies(run))

    def draw(self, run: Run) -> list[Drawing]:
        drawings: list[Drawing] = self.module.draw(run)
        return drawings

    def caption(self, run: Run) -> str:
        return str(self.module.caption(run))


@cache
def all_charts() -> list[Chart]:
    """Every chart, in the order of the page."""
    found = [
        Chart(
            module.__name__.rpartition(".")[2].replace("_", "-"),
            module.TITLE,
            module.ORDER,
            frozenset(module.METRICS),
            module,
        )
        for module in discovery.modules(__name__)
    ]
    return sorted(found, key=lambda chart: (chart.order, chart.id))
