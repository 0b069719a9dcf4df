"""The end of `dnsrig run`: a table and the findings, readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dnsrig import traps
from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import VariantRow, describe, main_metric, variant_table
from dnsrig.report import figures, wording
from dnsrig.report.figures import visible
from dnsrig.report.gather import Entry, TrapReport, gather
from dnsrig.rundir import Finding

MOST_VARIANTS = 4
"""Variants of which a trap is quoted; the report has them all."""


def terminal_table(run: Run, findings: Iterable[Finding] | None = None) -> Table:
    """One row a variant: its axes, repeats, the main metric, percent of the baseline, and what was odd.

    ``findings`` saves examining the run again where they are at hand.
    """
    reports = gather(run, traps.examine(run) if findings is None else findings)
    metric = describe(main_metric(run))
    rows = variant_table(run, metric.name)
    compared = any(row.baseline is not None for row in rows)
    table = Table(
        title=visible(f"{metric.title}, of the n repeats that are done"),
        title_justify="left",
        title_style="",
        caption_justify="left",
        caption_style="",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
    )
    for axis in run.manifest.axes:
        table.add_column(Text(visible(axis)), overflow="fold")
    table.add_column("n", no_wrap=True)
    table.add_column("median", no_wrap=True)
    table.add_column("min..max", no_wrap=True)
    if compared:
        table.add_column("of baseline", overflow="fold")
    table.add_column("odd", overflow="fold")
    for row in rows:
        cells = [wording.parameter(run, row.variant.parameters[axis]) for axis in run.manifest.axes]
        median, spread = figures.median_and_range(row.spread, metric.unit, censored=row.censored)
        rate = wording.asked(run, row).partition(" queries")[0]
        lines = [median, *([f"{rate}/s"] if rate else [])]
        texts = [Text(visible(cell)) for cell in [*cells, _repeats(row)]]
        texts += [Text("\n".join(map(visible, lines))), Text(visible(spread))]
        texts += [_relative(run, row)] if compared else []
        table.add_row(*texts, Text("\n".join(_odd(row, reports))))
    notes = [f"of baseline: {wording.OF_MEAN}; [..]: {wording.OF_MEDIAN}"] if compared else []
    table.caption = Text("\n".join([*_reasons(run), *notes]))
    return table


def terminal_findings(run: Run, findings: Iterable[Finding]) -> Group:
    """What was found, each with its remedy; what could not be told; and what is clear, in one line."""
    reports = gather(run, findings)
    blocks: list[Text | Padding] = []
    for report in reports:
        blocks += _found(report)
    for report in reports:
        if report.unsure and not report.found:
            blocks.append(Text(visible(f"cannot tell: {report.id}: {report.unsure[0].summary}")))
    clear = [report.id for report in reports if report.is_clear]
    if clear:
        blocks.append(Text(visible(f"clear: {', '.join(clear)}")))
    return Group(*blocks)


def _found(report: TrapReport) -> list[Text | Padding]:
    if not report.found:
        return []
    blocks: list[Text | Padding] = [Text(visible(f"found: {report.title} ({report.id})"), style="bold")]
    blocks += [_indented(f"{_subject(entry)}: {entry.summary}") for entry in report.found[:MOST_VARIANTS]]
    if (rest := len(report.found) - MOST_VARIANTS) > 0:
        blocks.append(_indented(f"and of {figures.count(rest, 'variant')} more: see the report"))
    return blocks + [_indented(f"remedy: {remedy}") for remedy in report.remedies]


def _relative(run: Run, row: VariantRow) -> Text:
    """Percent of the baseline, and what goes with it on a line of its own."""
    parts = (wording.relative(run, row), wording.beneath(run, row))
    return Text("\n".join(visible(part) for part in parts if part))


def _indented(text: str) -> Padding:
    return Padding(Text(visible(text)), (0, 0, 0, 2))


def _subject(entry: Entry) -> str:
    return f"{entry.subject}, {entry.where}" if entry.where else entry.subject


def _repeats(row: VariantRow) -> str:
    """``5``, or ``4 of 5`` where one does not count."""
    done, total = max(row.outcomes["done"], len(row.values)), row.outcomes.total()
    return str(done) if done == total else f"{done} of {total}"


def _odd(row: VariantRow, reports: list[TrapReport]) -> list[str]:
    """The traps that found something, and the outcomes other than `done`: a line each."""
    ids = [report.id for report in reports if report.concerns(row.variant.id)]
    others = [f"{count} {outcome}" for outcome, count in sorted(row.outcomes.items()) if outcome != "done"]
    return [visible(line) for line in [*ids, *others]]


def _reasons(run: Run) -> list[str]:
    """Why trials are not done, a line a variant."""
    reasons = [(variant.label, wording.progress(run, variant)) for variant in run.manifest.variants]
    return [visible(f"{label}: {why}") for label, why in reasons if why]
