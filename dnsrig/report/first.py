"""The first screen of a run: its question, the one chart that answers it, a sentence for each comparison, and the
findings that matter most. The page, the browser and the terminal show it alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import main_metric
from dnsrig.procedures import all_procedures
from dnsrig.report import fit, headlines, svg
from dnsrig.report.charts import Chart, Drawing
from dnsrig.report.figures import visible
from dnsrig.report.gather import TrapReport
from dnsrig.report.headlines import Headline
from dnsrig.report.verdicts import Verdicts, verdicts

Draw = Callable[[Chart], Drawing | None]
BISECTED = "search-by-round"
"""A bisection has a question of its own, whatever it measured."""
BY_VARIANT = "time-by-variant"
ROOMS = {"wide": (690, 520), "narrow": (350, 290)}
"""A laptop's and a phone's room for the chart, in CSS pixels."""


@dataclass(frozen=True)
class Picture:
    """The chart that answers the question, drawn for each of ``ROOMS``."""

    id: str
    title: str
    drawn: dict[str, Markup]


@dataclass(frozen=True)
class First:
    """The first screen."""

    question: str
    picture: Picture | None
    verdicts: Verdicts
    headlines: list[Headline]
    more: int
    """How many findings are left to the rest of the page."""


def first(run: Run, reports: Sequence[TrapReport], charts: Sequence[Chart], draw: Draw) -> First:
    """The first screen of ``run``; ``charts`` are those of its report, and ``draw`` draws one of them."""
    lines = headlines.headlines(run, reports)
    said = Verdicts("", [], 0)
    with run.failures.isolate("section", "verdicts"):
        said = verdicts(run)
    most = headlines.MOST
    question = run.manifest.question or run.manifest.title
    return First(question, _picture(run, charts, draw), said, lines[:most], len(lines[most:]))


def _picture(run: Run, charts: Sequence[Chart], draw: Draw) -> Picture | None:
    """The chart that answers the question of ``run``; None where nothing can be drawn yet."""
    for chart in candidates(run, charts):
        with run.failures.isolate("chart", chart.id):
            if drawing := draw(chart):
                return _drawn(chart, drawing)
    return None


def candidates(run: Run, charts: Sequence[Chart]) -> list[Chart]:
    """``charts`` in the order in which they answer the question of ``run``, without those about something else."""
    procedure = all_procedures().get(run.manifest.procedure)
    wanted = (BISECTED, *getattr(procedure, "ANSWERED_BY", ()), BY_VARIANT)
    by_id = {chart.id: chart for chart in charts}
    others = [chart.id for chart in charts if main_metric(run) in chart.metrics(run)]
    return [by_id[name] for name in dict.fromkeys([*wanted, *others]) if name in by_id]


def _drawn(chart: Chart, drawing: Drawing) -> Picture:
    spec = drawing.chart.to_dict(validate=False)
    title = visible(": ".join(part for part in (chart.title, drawing.group, drawing.title) if part))
    drawn = {
        name: svg.embed(fit.fitted(spec, *room), f"first-{name}", title, least_width=False)
        for name, room in ROOMS.items()
    }
    return Picture(chart.id, title, drawn)
