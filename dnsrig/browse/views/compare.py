"""Runs side by side: each is compared with the first, in figures, conditions and charts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dnsrig.browse import drawings
from dnsrig.browse.shared import Opened, refuse, shelf_of, shown, url
from dnsrig.comparison.compare import TwoRuns, compare_runs, metric_name
from dnsrig.comparison.run_differences import Difference
from dnsrig.comparison.summary import main_metric
from dnsrig.errors import DnsrigError
from dnsrig.metrics import Metric, all_metrics
from dnsrig.report import comparison

MOST_RUNS = 12
"""Side by side: more fit on no screen, and each is read as a whole."""


@dataclass(frozen=True)
class Table:
    """The variants that both runs have, under one metric."""

    metric: Metric
    axes: list[str]
    rows: list[list[list[str]]]
    """A list of lines a cell."""


@dataclass(frozen=True)
class Compared:
    """A run and its comparison with the base."""

    new: Opened
    refused: str = ""
    """Why they cannot be compared; the rest is then empty."""
    tables: list[Table] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    """Variants that only one of them has."""


@dataclass(frozen=True)
class Pictures:
    """One chart of all runs that have it."""

    title: str
    of_runs: list[tuple[Opened, str]]
    """The run, and the address of its drawings."""


def compare(request: Request) -> Response:
    """`run`, several times: the first is the base; `metric`: one more to compare, several times."""
    base, *others = named(request, MOST_RUNS)
    if not others:
        raise HTTPException(422, "choose two runs or more")
    metrics = [name for name in request.query_params.getlist("metric")[:MOST_RUNS] if name]
    compared = [held_against(base, new, metrics) for new in others]
    return shown(
        request,
        "compare.html.j2",
        base=base,
        compared=compared,
        columns=comparison.COLUMNS,
        metrics=metrics,
        known_metrics=sorted(all_metrics()),
        main=main_metric(base.run),
        pictures=list(_pictures([base, *others])),
    )


def named(request: Request, most: int) -> list[Opened]:
    """The runs that the address names, in its order; at least one. Raises HTTPException."""
    ids = list(dict.fromkeys(request.query_params.getlist("run")))
    if not 0 < len(ids) <= most:
        raise HTTPException(422, f"choose between one and {most} runs")
    return [shelf_of(request).opened(run) for run in ids]


def held_against(base: Opened, new: Opened, metrics: list[str]) -> Compared:
    first, second = sorted((base, new), key=lambda opened: opened.entry.id)  # all threads lock in one order
    with first.lock, second.lock:
        try:
            wanted = [metric_name(name, (base.run, new.run)) for name in metrics]
            found = compare_runs(base.run, new.run, wanted, [])
        except DnsrigError as error:
            return Compared(new, refused=error.message)
        return Compared(new, "", list(_tables(found)), comparison.sentences(found), found.differences, _alone(found))


def _tables(found: TwoRuns) -> Iterator[Table]:
    axes = list(found.new.axes)
    for metric, lines in groupby(found.lines, key=lambda line: line.metric):
        yield Table(metric, axes, [comparison.cells(found.new, metric, line) for line in lines])


def _alone(found: TwoRuns) -> list[str]:
    return [
        *(f"only in the base: {variant.label}" for variant in found.only_in_base),
        *(f"only in the new run: {variant.label}" for variant in found.only_in_new),
    ]


def _pictures(runs: list[Opened]) -> Iterator[Pictures]:
    """The charts that more than one has, in the order of the report."""
    having = [(opened, {chart.id: chart for chart in drawings.charts(opened)}) for opened in runs]
    titles = {name: chart.title for _, charts in having for name, chart in charts.items()}
    for name, title in titles.items():
        of_runs = [(o, url("run", o.entry.id, "chart", f"{name}.json")) for o, charts in having if name in charts]
        if len(of_runs) > 1:
            yield Pictures(title, of_runs)


def conditions(request: Request) -> Response:
    """In what runs differ, and nothing else of them."""
    base, *others = named(request, MOST_RUNS)
    if not others:
        raise HTTPException(422, "choose two runs or more")
    compared = [held_against(base, new, []) for new in others]
    if all(each.refused for each in compared):
        refuse(DnsrigError(compared[0].refused))
    return shown(request, "differences.html.j2", base=base, compared=compared)


ROUTES = [Route("/compare", compare), Route("/differences", conditions)]
