"""The first screen of a run: its question, the one chart that answers it, a sentence for each comparison, and the
findings that matter most. The page, the browser and the terminal show it alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from markupsafe import Markup

from dnsrig.comparison.summary import main_metric
from dnsrig.report import fit, headlines, svg
from dnsrig.report.charts import Chart, Drawing
from dnsrig.report.figures import visible
from dnsrig.report.gather import TrapReport
from dnsrig.report.headlines import Headline
from dnsrig.report.verdicts import Verdicts, verdicts
from dnsrig.runs.run import Run

Draw = Callable[[str], Drawing | None]
"""The first drawing of the chart with this id."""
BISECTED = "search-by-round"
"""A bisection has a question of its own, whatever it measured."""
ANSWERED_BY = {
    "capacity_qps": ("loss-to-udp",),
    "ixfr_time_percent": ("ixfr-time-by-size",),
    "last_done_s": ("arrival-at-secondaries",),
    "p99_ms": ("slowest-percentile",),
    "propagation_p50_ms": ("propagation",),
    "throughput_kbytes_per_s": ("congestion",),
    "transfer_time_s": ("replication",),
    "zones_per_s": ("workers", "zones-by-policy"),
}
"""Main metric -> the charts that answer its question at a glance, the best first; else it is the repeats by variant."""
BY_VARIANT = "time-by-variant"
ROOMS = {"wide": (690, 520), "narrow": (350, 248)}
"""A laptop's and a phone's room for the chart, in CSS pixels."""


@dataclass(frozen=True)
class Picture:
    """A drawing on the page."""

    id: str
    title: str
    svg: Markup


@dataclass(frozen=True)
class First:
    """The first screen."""

    question: str
    verdicts: Verdicts
    headlines: list[Headline]
    more: int
    """How many findings are left to the rest of the page."""
    pictures: dict[str, Picture] = field(default_factory=dict)
    """The chart that answers the question, for each of ``ROOMS``; empty if nothing can be drawn yet."""


def first(run: Run, reports: Sequence[TrapReport], charts: Sequence[Chart], draw: Draw) -> First:
    """The first screen of ``run``; ``charts`` are the charts of its report, and ``draw`` draws one of them."""
    return replace(in_words(run, reports), pictures=_pictures(run, candidates(run, charts), cache(draw)))


def in_words(run: Run, reports: Sequence[TrapReport]) -> First:
    """The first screen without its chart."""
    said = Verdicts("", [], 0)
    with run.failures.isolate("section", "verdicts"):
        invalidated = {entry.variant for report in reports if report.weight == "invalidates" for entry in report.found}
        said = verdicts(run, invalidated=invalidated)
    lines, most = headlines.headlines(run, reports), headlines.MOST
    return First(run.manifest.question or run.manifest.title, said, lines[:most], len(lines[most:]))


def _pictures(run: Run, charts: Sequence[Chart], draw: Draw) -> dict[str, Picture]:
    """For each room the first of ``charts`` that fits into it; if none fits, the first one, which scrolls."""
    found: dict[str, Picture] = {}
    for room, size in ROOMS.items():
        for chart in charts:
            with run.failures.isolate("chart", chart.id):
                drawing = draw(chart.id)
                drawn = drawing and fit.fitted(drawing.chart.to_dict(validate=False), *size)
                if drawing and drawn and (drawn.fits or room not in found):
                    found[room] = _picture(chart, drawing, drawn.svg, f"first-{room}")
                if drawn and drawn.fits:
                    break
    return found


def _picture(chart: Chart, drawing: Drawing, drawn: str, prefix: str) -> Picture:
    title = visible(": ".join(part for part in (chart.title, drawing.group, drawing.title) if part))
    return Picture(chart.id, title, svg.embed(drawn, prefix, title, least_width=False))


def candidates(run: Run, charts: Sequence[Chart]) -> list[Chart]:
    """``charts`` in the order in which they answer the question of ``run``, without those about something else."""
    wanted = (BISECTED, *ANSWERED_BY.get(main_metric(run), ()), BY_VARIANT)
    by_id = {chart.id: chart for chart in charts}
    named = [by_id[name] for name in wanted if name in by_id]
    return named or [chart for chart in charts if main_metric(run) in chart.metrics(run)]
