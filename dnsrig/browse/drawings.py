"""The drawings of a chart of the report as specifications that answer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from dnsrig.browse import interactive, rescale
from dnsrig.browse.shared import Opened, url
from dnsrig.browse.spec import Rows
from dnsrig.report.charts import Chart, Drawing, all_charts, chosen
from dnsrig.report.figures import visible

SCALES = ("", "linear", "log")


def charts(opened: Opened) -> list[Chart]:
    """The charts that the report of the run would have."""
    with opened.lock:
        return chosen(opened.run.as_far_as_whole())


@dataclass(frozen=True)
class Drawn:
    """A drawing as a page takes it."""

    title: str
    group: str
    open: bool
    spec: dict[str, Any]
    switchable: bool
    """Between linear and logarithmic."""

    def as_json(self) -> dict[str, Any]:
        named = {"title": visible(self.title), "group": visible(self.group), "open": self.open}
        return named | {
            "spec": self.spec,
            "switchable": self.switchable,
            "logarithmic": rescale.is_logarithmic(self.spec),
        }


def drawn(opened: Opened, chart: Chart, scale: str) -> list[Drawn]:
    """All drawings of ``chart``, made once for each scale."""
    key = (chart.id, scale)
    with opened.lock:
        if key not in opened.specs:
            run = opened.run.as_far_as_whole()
            found = chart.draw(run, opened.findings)
            opened.specs[key] = [answering(each, scale, url("run", opened.entry.id, "trial")) for each in found]
        specs: list[Drawn] = opened.specs[key]
        return specs


def first(opened: Opened, name: str) -> Drawing | None:
    """The first drawing of the chart ``name``, as the report has it."""
    drawings = (chart.draw(opened.run.as_far_as_whole(), opened.findings) for chart in all_charts() if chart.id == name)
    return next(itertools.chain.from_iterable(drawings), None)


def answering(drawing: Drawing, scale: str = "", trials_at: str = "") -> Drawn:
    """``drawing`` with values under the pointer, zoom and switches."""
    spec = drawing.chart.to_dict()
    switchable = rescale.switchable(spec, Rows(spec).values)
    answers = interactive.interactive(spec, scale=scale, trials_at=trials_at)
    return Drawn(drawing.title, drawing.group, drawing.open, answers, switchable)
