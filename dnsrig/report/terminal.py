"""The end of `dnsrig run`: a table and the findings, readable without colour and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dnsrig import traps
from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import VariantRow, describe, main_metric, variant_table
from dnsrig.report import checks, figures, wording
from dnsrig.report.figures import visible
from dnsrig.report.gather import Entry, TrapReport, gather
from dnsrig.rundir import Finding

WIDEST = 1_000
"""Columns of a terminal, for measuring a table as wide as it wants to be."""
MOST_CHECKS = 6
"""Checks that did not pass of which the reason is told; the report has them all."""
MOST_VARIANTS = 4
"""Variants of which a trap is quoted; the report has them all."""


def terminal_table(run: Run, findings: Iterable[Finding] | None = None) -> RunTable:
    """One row a variant: its axes, repeats, the main metric, percent of the baseline, and what was odd.

    ``findings`` saves examining the run again where they are at hand.
    """
    reports = gather(run, traps.examine(run) if findings is None else findings)
    metric = describe(main_metric(run))
    rows = variant_table(run, metric.name)
    compared = any(row.baseline is not None for row in rows)
    notes = [f"of baseline: {wording.OF_MEAN}; [..]: {wording.of_what(rows)}"] if compared else []
    notes += [f"a..b {metric.unit}: {wording.BOTH_ENDS}"] if any(map(wording.is_between, rows)) else []
    notes += [f"chance: {reach} (after Holm)"] if (reach := wording.reach(run, rows)) else []
    return RunTable(
        title=visible(f"{metric.title}, of the n repeats that are done"),
        columns=[*map(visible, run.manifest.axes), "n", "median", "min..max", *(["of baseline"] if compared else [])],
        axes=len(run.manifest.axes),
        rows=[_row(run, row, metric.unit, compared=compared) for row in rows],
        odd=[_odd(row, reports) for row in rows],
        notes=[*_reasons(run), *notes],
    )


@dataclass(frozen=True)
class RunTable:
    """A table where each cell fits without breaking a word; else a paragraph a variant."""

    title: str
    columns: list[str]
    axes: int
    """So many of the columns, the first, say which variant it is."""
    rows: list[list[str]]
    """A cell a column; a cell may have several lines."""
    odd: list[list[str]]
    """By row: a line each."""
    notes: list[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table()
        if Measurement.get(console, options.update(max_width=WIDEST), table).maximum <= options.max_width:
            yield table
            return
        yield Text(self.title)
        for cells, odd in zip(self.rows, self.odd):
            yield self._paragraph([" ".join(cell.splitlines()) for cell in cells], odd)
        yield Text("\n".join(self.notes))

    def _table(self) -> Table:
        table = Table(
            title=Text(self.title),
            title_justify="left",
            title_style="",
            caption=Text("\n".join(self.notes)),
            caption_justify="left",
            caption_style="",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=0,
        )
        for column in [*self.columns, "odd"]:
            table.add_column(Text(column), no_wrap=True)
        for cells, odd in zip(self.rows, self.odd):
            table.add_row(*map(Text, cells), Text("\n".join(odd)))
        return table

    def _paragraph(self, cells: list[str], odd: list[str]) -> Group:
        variant = " ".join(f"{name}={value}" for name, value in zip(self.columns, cells[: self.axes]))
        told = [f"{name} {value}" for name, value in zip(self.columns[self.axes :], cells[self.axes :]) if value]
        lines = ["; ".join(told), *(f"odd: {line}" for line in odd)]
        return Group(Text(variant or "only"), Padding(Text("\n".join(lines)), (0, 0, 0, 2)))


def _row(run: Run, row: VariantRow, unit: str, *, compared: bool) -> list[str]:
    """The cells of a variant: its axes, n, median, range and, where anything is compared, percent of the baseline."""
    axes = [wording.parameter(run, row.variant.parameters[axis]).replace(" ", "\n") for axis in run.manifest.axes]
    median, spread = figures.median_and_range(row.spread, unit, censored=row.censored, lower=row.lower_spread)
    rate = wording.asked(run, row).partition(" queries")[0]
    relative = [wording.relative(run, row), wording.beneath(run, row)] if compared else []
    lines = [[median, *([f"{rate}/s"] if rate else [])], [spread], *([[part for part in relative if part]] * compared)]
    return [*map(_lines, [axis.splitlines() for axis in axes]), _repeats(row), *map(_lines, lines)]


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(map(visible, lines))


def terminal_findings(run: Run, findings: Iterable[Finding]) -> Group:
    """What was found, each with its remedy; what could not be told; and what is clear, in one line."""
    reports = gather(run, findings)
    blocks: list[Text | Padding] = _checks(run)
    for report in reports:
        blocks += _found(report)
    for report in reports:
        if report.unsure and not report.found:
            blocks.append(Text(visible(f"cannot tell: {report.id}: {report.unsure[0].summary}")))
    clear = [report.id for report in reports if report.is_clear]
    if clear:
        blocks.append(Text(visible(f"clear: {', '.join(clear)}")))
    remarks = [(report.id, remark) for report in reports for remark in report.remarks]
    blocks += [Padding(Text(visible(f"{trap}: {remark}")), (0, 0, 0, 2)) for trap, remark in remarks]
    return Group(*blocks)


def terminal_failures(run: Run) -> Group:
    """What failed while the run was examined and drawn, each with its exception; nothing where nothing did."""
    blocks: list[Text | Padding] = []
    for failure in run.failures:
        trials = f", in {figures.count(len(failure.trials), 'trial')}" if failure.trials else ""
        blocks.append(Text(visible(f"failed: {failure.part} {failure.name}{trials}"), style="bold"))
        blocks.append(_indented(failure.error))
    return Group(*blocks)


def _checks(run: Run) -> list[Text | Padding]:
    """How many manipulation checks passed, and those that did not."""
    if not (summary := checks.summary(run)):
        return []
    odd = [line for line in checks.lines(run) if not line.holds]
    told = [_indented(f"{line.variant.label}: {line.verdict}: {line.reason}") for line in odd[:MOST_CHECKS]]
    more = [_indented(f"and {len(odd) - MOST_CHECKS} more: see the report")] if len(odd) > MOST_CHECKS else []
    return [Text(f"manipulation checks: {summary}"), *told, *more]


def _found(report: TrapReport) -> list[Text | Padding]:
    if not report.found:
        return []
    blocks: list[Text | Padding] = [Text(visible(f"found: {report.title} ({report.id})"), style="bold")]
    blocks += [_indented(f"{_subject(entry)}: {entry.summary}") for entry in report.found[:MOST_VARIANTS]]
    if (rest := len(report.found) - MOST_VARIANTS) > 0:
        blocks.append(_indented(f"and of {figures.count(rest, 'variant')} more: see the report"))
    return blocks + [_indented(f"remedy: {remedy}") for remedy in report.remedies]


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
