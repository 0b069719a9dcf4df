"""All drawings of a run, each rendered once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from altair.utils.schemapi import debug_mode

from dnsrig import traps
from dnsrig.report import svg
from dnsrig.report.charts import Chart, Drawing, chosen
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Rendered:
    """A drawing as SVG text, with the caption of its chart."""

    chart: Chart
    caption: str
    metrics: set[str]
    """The metrics that the chart shows."""
    drawing: Drawing
    svg: str

    @property
    def name(self) -> str:
        """Unique in a run; safe as a file name and as an identifier."""
        return _UNSAFE.sub("-", f"{self.chart.id}-{self.drawing.name}")


def draw_all(run: Run, findings: Sequence[Finding] | None = None) -> list[Rendered]:
    """Every drawing of every chart of ``run``, in the order of the page; a chart that raises is left out and reported.

    Of damaged files they show what lies before the damage. ``findings`` saves examining the run again where they are at
    hand.
    """
    found = traps.examine(run) if findings is None else findings
    whole = run.as_far_as_whole()
    drawings: list[Rendered] = []
    for chart in chosen(whole):
        with run.failures.isolate("chart", chart.id):
            drawings += _drawn(chart, whole, found)
    return drawings


def _drawn(chart: Chart, run: Run, findings: Sequence[Finding]) -> list[Rendered]:
    caption, metrics = chart.caption(run), chart.metrics(run)
    with debug_mode(False):
        return [Rendered(chart, caption, metrics, each, svg.render(each.chart)) for each in chart.draw(run, findings)]
