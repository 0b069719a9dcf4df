"""All drawings of a run, each rendered once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dnsrig import traps
from dnsrig.analysis.read import Run
from dnsrig.report import svg
from dnsrig.report.charts import Chart, Drawing, all_charts
from dnsrig.rundir import Finding

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Rendered:
    """A drawing as SVG text."""

    chart: Chart
    drawing: Drawing
    svg: str

    @property
    def name(self) -> str:
        """Unique in a run; safe as a file name and as an identifier."""
        return _UNSAFE.sub("-", f"{self.chart.id}-{self.drawing.name}")


def draw_all(run: Run, findings: Sequence[Finding] | None = None) -> list[Rendered]:
    """Every drawing of every chart that applies to ``run``, in the order of the page.

    ``findings`` saves examining the run again where they are at hand.
    """
    found = traps.examine(run) if findings is None else findings
    return [
        Rendered(chart, drawing, svg.render(drawing.chart))
        for chart in all_charts()
        if chart.applies(run)
        for drawing in chart.draw(run, found)
    ]
