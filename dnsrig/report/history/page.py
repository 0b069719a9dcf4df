"""A history as a page: one file without scripts, with links to the runs and their trials beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from dnsrig.comparison.history import History, Point, Series
from dnsrig.metrics import Metric
from dnsrig.report import figures, svg
from dnsrig.report.charts import _look
from dnsrig.report.history import chart, data, table
from dnsrig.report.page import environment


@dataclass(frozen=True)
class Link:
    text: str
    target: str


@dataclass(frozen=True)
class Section:
    """A metric: its chart, and a table for each series."""

    metric: Metric
    svg: Markup
    series: list[Series]


def render(history: History, charts: Mapping[str, str], out: Path) -> str:
    """``charts``: metric -> SVG. ``out``: the folder of the page, which links are relative to."""
    sections = [
        Section(metric, svg.embed(charts[metric.name], f"svg-{metric.name}", f"{metric.title} by version"), series)
        for metric, series in history.metrics
    ]
    return (
        environment()
        .get_template("history.html.j2")
        .render(
            history=history,
            sections=sections,
            columns=table.COLUMNS,
            caption=chart.CAPTION,
            chance=table.chance(history),
            cells=table.cells,
            sentence=table.sentence,
            sentences=table.sentences,
            trials=lambda point: _trials(point, out),
            reports=[
                Link(run.manifest.run, quote(data.path_from(out, run.directory / "report.html")))
                for run in history.runs
            ],
            neutrals=_look.NEUTRALS,
            font=Markup(_look.FONT),
            figures=figures,
        )
    )


def _trials(point: Point, out: Path) -> list[Link]:
    """The folder of each trial, named by its repeat."""
    return [Link(str(value.trial.key.repeat), f"{quote(data.trial_path(value, out))}/") for value in point.values]
