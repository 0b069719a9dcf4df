"""The page: one self-contained HTML file, without scripts and without any request.

Everything that came from outside (servers, zones, logs, names of files, the experiment's own words) is
untrusted. Two walls: jinja2 escapes all that is not markup of ours, and before that ``visible`` writes out
what would act unseen; a content security policy forbids the page to load or to run anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dnsrig.comparison import configurations
from dnsrig.comparison.summary import VariantRow, describe, main_metric, metric_tables, variant_table
from dnsrig.report import (
    bisection,
    calibrated,
    checks,
    conditions,
    elsewhere,
    features,
    figures,
    first,
    imported,
    published,
    ran,
    setting,
    side_by_side,
    svg,
    what_did_it,
    wording,
)
from dnsrig.report.charts import Chart, _look
from dnsrig.report.draw import Rendered
from dnsrig.report.first import Picture
from dnsrig.report.gather import TrapReport, together
from dnsrig.runs.run import Run

_CODE = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class Folder:
    """Pictures under one heading, folded; without a title they are always visible."""

    title: str
    open: bool
    pictures: list[Picture]


@dataclass(frozen=True)
class ChartSection:
    chart: Chart
    caption: str
    folders: list[Folder]
    concerned: list[TrapReport]
    """Findings about the metrics that this chart shows."""


@dataclass(frozen=True)
class AnswerRow:
    """A line of the table of all variants."""

    row: VariantRow
    outcomes: str
    measured: str
    asked: str
    progress: str
    relative: str
    interval: str
    disagreement: str
    judgement: str
    odd: list[TrapReport]


@dataclass(frozen=True)
class Sections:
    """Makes the sections of the page, each by itself."""

    run: Run

    def section(self, name: str, make: Callable[[Run], Any]) -> Any:
        """What ``make`` returns for the run; None, which leaves the section out, if it fails."""
        with self.run.failures.isolate("section", name):
            return make(self.run.as_far_as_whole())


def render(run: Run, reports: list[TrapReport], drawings: list[Rendered]) -> str:
    """The page as text. ``reports`` from ``gather``, ``drawings`` from ``draw_all``."""
    template = environment().get_template("report.html.j2")
    known = Sections(run)
    columns = conditions.by_machine(run.manifest)
    return template.render(
        run=run,
        manifest=run.manifest,
        first=first.first(run, reports, *drawn(drawings)),
        calibrated=known.section("calibration", lambda run: calibrated.line(run.manifest)),
        axes=list(run.manifest.axes),
        neutrals=_look.NEUTRALS,
        font=Markup(_look.FONT),
        metric=describe(main_metric(run)),
        answer=answer(run, reports),
        **said_of_answer(run),
        searched=known.section("which commit", bisection.searched),
        checks=known.section("manipulation checks", checks.lines) or [],
        checks_summary=checks.summary(run),
        features=known.section("what servers support", features.table),
        side_by_side=known.section("side by side", side_by_side.tables),
        run_wide=[report for report in reports if report.concerns(None)],
        found=[report for report in reports if report.found],
        unsure=[report for report in reports if report.unsure],
        clear=[report for report in reports if report.is_clear],
        published=known.section("published against measured", published.held),
        here=published.here(run),
        versions=known.section("what did it", what_did_it.sections),
        imported=known.section("results of other tools", imported.rows),
        charts=sections(reports, drawings),
        metrics=metric_tables(run),
        trials=run.trials,
        logged=known.section("what servers logged", ran.logged),
        machines=[machine.name for machine in run.manifest.machines],
        facts=conditions.alike(columns),
        differing=conditions.differing(columns),
        links=known.section("links as measured", conditions.links),
        instruments=known.section("instruments", conditions.instruments),
        around=conditions.around(run),
        other_machines=known.section("hosts on other machines", elsewhere.other_machines),
        machines_differ=known.section("what differs of other machines", elsewhere.differing),
        interfaces=known.section("interfaces", elsewhere.interfaces),
        clocks=known.section("clocks of other machines", elsewhere.clocks),
        generators=known.section("generators", elsewhere.generators),
        servers=known.section("servers", ran.servers),
        document=conditions.flatten(run.manifest.document) | _queries(run),
        settings=known.section("hosts", ran.settings),
        configurations=known.section("configurations", lambda run: configurations.within(run.manifest)),
        signatures=known.section("signatures", ran.signatures),
        failures=list(run.failures),  # last: what failed above is among them
    )


def _queries(run: Run) -> dict[str, str]:
    """The files of queries as a line of the experiment; empty without a file."""
    return {"queries as read": line} if (line := setting.queries(run)) else {}


def drawn(drawings: list[Rendered]) -> tuple[list[Chart], first.Draw]:
    """The charts that were drawn, and the first drawing of each."""
    by_id = {rendered.chart.id: rendered for rendered in reversed(drawings)}
    return [rendered.chart for rendered in by_id.values()][::-1], lambda name: by_id[name].drawing


def said_of_answer(run: Run) -> dict[str, str]:
    """Explanations in ``answer.html.j2``: what its percentages are, and the least p that they can have."""
    rows = variant_table(run, main_metric(run))
    return {"of_what": wording.of_what(rows), "reach": wording.reach(run, rows)}


def answer(run: Run, reports: list[TrapReport]) -> list[AnswerRow]:
    """The table of all variants: a line each, under the main metric."""
    return [
        AnswerRow(
            row=row,
            outcomes=wording.outcomes(row.outcomes),
            measured=wording.measured(row),
            asked=wording.asked(run, row),
            progress=wording.progress(run, row.variant),
            relative=wording.relative(run, row),
            interval=wording.beneath(run, row),
            disagreement=wording.disagreement(row.comparison),
            judgement=wording.judgement(row),
            odd=[report for report in reports if report.concerns(row.variant.id)],
        )
        for row in variant_table(run, main_metric(run))
    ]


def sections(reports: list[TrapReport], drawings: list[Rendered]) -> list[ChartSection]:
    """The drawings by chart, each chart with its caption and the findings about what it shows."""
    by_chart: dict[str, list[Rendered]] = {}
    for rendered in drawings:
        by_chart.setdefault(rendered.chart.id, []).append(rendered)
    return [
        ChartSection(
            chart=group[0].chart,
            caption=group[0].caption,
            folders=_folders(group),
            concerned=[report for report in reports if report.metrics & group[0].metrics],
        )
        for group in by_chart.values()
    ]


def _folders(group: list[Rendered]) -> list[Folder]:
    folders: dict[str, Folder] = {}
    for rendered in group:
        drawing = rendered.drawing
        folder = folders.setdefault(drawing.group, Folder(drawing.group, drawing.open, []))
        description = ": ".join(part for part in (rendered.chart.title, drawing.group, drawing.title) if part)
        markup = svg.embed(rendered.svg, f"svg-{rendered.name}", figures.visible(description))
        folder.pictures.append(Picture(f"chart-{rendered.name}", drawing.title, markup))
    return list(folders.values())


@cache
def environment() -> Environment:
    """The templates of the report, which a process compiles once."""
    return make_environment()


def make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dnsrig.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters["prose"] = _prose
    environment.globals.update(figures=figures, wording=wording, conditions=conditions, together=together)
    return environment


def _prose(text: str) -> Markup:
    """Text of ours or of a trap, in which `words like these` are set as code."""
    pieces = _CODE.split(figures.visible(text))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(piece) if number % 2 else escape(piece) for number, piece in enumerate(pieces))


def _finalize(value: Any) -> Any:
    """Applied to every value that the template prints: text that is not markup of ours is made visible."""
    return figures.visible(value) if type(value) is str else value
