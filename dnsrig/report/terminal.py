"""The end of `dnsrig run`: a table and the findings, readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dnsrig import traps
from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import VariantRow, describe, variant_table
from dnsrig.report import wording
from dnsrig.report.figures import parameter, visible
from dnsrig.report.gather import Entry, TrapReport, gather
from dnsrig.rundir import Finding


def terminal_table(run: Run, findings: Iterable[Finding] | None = None) -> Table:
    """One row a variant: its axes, repeats, the main metric, percent of the baseline, and what was odd.

    ``findings`` saves examining the run again where they are at hand.
    """
    reports = gather(run, traps.examine(run) if findings is None else findings)
    metric = describe(wording.main_metric(run))
    rows = variant_table(run, metric.name)
    compared = any(row.baseline is not None for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", padding=(0, 1, 0, 0))
    for axis in run.manifest.axes:
        table.add_column(Text(visible(axis)), overflow="fold")
    table.add_column("n", overflow="fold")
    table.add_column(Text(f"{metric.title}, median [min..max]"), overflow="fold")
    if compared:
        table.add_column("of baseline", overflow="fold")
    table.add_column("odd", overflow="fold")
    for row in rows:
        cells = [parameter(row.variant.parameters[axis]) for axis in run.manifest.axes]
        cells += [wording.outcomes(row.outcomes), _time(run, row)]
        cells += [wording.relative(run, row)] if compared else []
        odd = ", ".join(report.id for report in reports if report.concerns(row.variant.id))
        table.add_row(*(Text(visible(cell)) for cell in [*cells, odd]))
    return table


def terminal_findings(run: Run, findings: Iterable[Finding]) -> Group:
    """What was found, each with its remedy; what could not be told; and what is clear, in one line."""
    reports = gather(run, findings)
    lines: list[Text] = []
    for report in reports:
        lines += _found(report)
    unsure = [report for report in reports if report.unsure and not report.found]
    clear = [report.id for report in reports if report.is_clear]
    for report in unsure:
        lines.append(Text(visible(f"cannot tell: {report.id}: {report.unsure[0].summary}")))
    if clear:
        lines.append(Text(visible(f"clear: {', '.join(clear)}")))
    return Group(*lines)


def _found(report: TrapReport) -> list[Text]:
    if not report.found:
        return []
    lines = [Text(visible(f"found: {report.title} ({report.id})"), style="bold")]
    lines += [Text(visible(f"  {_subject(entry)}: {entry.summary}")) for entry in report.found]
    lines += [Text(visible(f"  remedy: {remedy}")) for remedy in report.remedies]
    return lines


def _subject(entry: Entry) -> str:
    return f"{entry.subject}, {entry.where}" if entry.where else entry.subject


def _time(run: Run, row: VariantRow) -> str:
    """The figure, and for what did not finish why."""
    reasons = wording.progress(run, row.variant)
    return f"{wording.measured(row)}; {reasons}" if reasons else wording.measured(row)
