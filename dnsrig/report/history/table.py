"""A history for a terminal: a table a series, and beneath it each change with where its trials lie."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from dnsrig.comparison.history import Change, History, Point, Series
from dnsrig.comparison.versions import SHORT
from dnsrig.report import figures, wording
from dnsrig.report.figures import visible
from dnsrig.report.fitting import FittingTable
from dnsrig.text import digits


def as_text(history: History) -> RenderableType:
    blocks: list[RenderableType] = []
    for series in history.series:
        blocks += [_table(series), *(Text(visible(sentence)) for sentence in sentences(series)), Text()]
    return Group(*blocks, Text(chance(history)))


def sentences(series: Series) -> list[str]:
    """A sentence for each change, or that there is no change; and what was left out of the search."""
    found = [sentence(change) for change in series.changes]
    left_out = [point.label for point in series.points if not point.counts]
    searched = sum(point.counts for point in series.points)
    if not found:
        found = [f"no change can be distinguished from chance over {figures.count(searched, 'version')}"]
    if left_out:
        found.append(f"not searched, as servers failed or nothing was measured: {', '.join(left_out)}")
    return found


def sentence(change: Change) -> str:
    """``from 9.18.10 to 9.18.11: better, 12.1 % [11.0..13.2] of what it was, p 0.002``."""
    percent = f"{figures.percent(change.comparison)} {figures.interval(change.comparison)}".rstrip()
    commits = [point.version.commit[:SHORT] for point in (change.last, change.first)]
    limit = "; trials that reached a limit count with it" if change.censored else ""
    apart = "; measured in different runs, which may be the cause" if change.apart else ""
    between = f" ({commits[0]}..{commits[1]})" if all(commits) else ""
    return (
        f"from {change.last.label} to {change.first.label}{between}: {change.kind}, {percent} of what it was over"
        f" {figures.count(len(change.before), 'version')}, p {figures.p_value(change.p)}{limit}{apart}"
    )


def chance(history: History) -> str:
    """How far the whole is to be trusted."""
    whole = f"chance: a false change is reported with at most {digits(100 * history.alpha * len(history.series))} %"
    each = f", over {len(history.series)} series" if len(history.series) > 1 else ""
    return f"{whole}{each}, where nothing but chance differs (docs/explanation/history.md)"


COLUMNS = ("version", "source", "trials", "median", "range", "95 % interval")


def cells(point: Point, unit: str) -> list[str]:
    """In the order of ``COLUMNS``."""
    median, range_ = figures.median_and_range(point.samples.spread, unit, censored=point.samples.censored)
    found = point.samples.interval
    ends = f"{figures.figure(found.low, unit)}..{figures.figure(found.high, unit)}" if found else figures.NONE
    source = point.version.commit[:SHORT] or point.version.server.source
    return [visible(point.label), visible(source), wording.outcomes(point.outcomes), median, range_, ends]


def _table(series: Series) -> FittingTable:
    metric = series.metric
    better = "" if metric.better == "neither" else f"; {metric.better} is better"
    firsts = {id(change.first): change for change in series.changes}
    rows = [[*cells(point, metric.unit), _mark(firsts.get(id(point)))] for point in series.points]
    return FittingTable(
        title=visible(f"{series.label}: {metric.title} ({metric.name}){better}"),
        title_style="bold",
        columns=[*COLUMNS, "change"],
        axes=1,
        rows=rows,
    )


def _mark(change: Change | None) -> str:
    return "" if change is None else f"{change.kind}, {figures.of_before(change.comparison)}"
