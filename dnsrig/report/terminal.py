"""The end of `dnsrig run` and `dnsrig report`, readable without colour and at 80 columns: the first screen in ten
lines, or the whole table and all findings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.padding import Padding
from rich.text import Text

from dnsrig import traps
from dnsrig.comparison.summary import VariantRow, describe, main_metric, variant_table
from dnsrig.report import calibrated, checks, elsewhere, figures, setting, wording
from dnsrig.report.figures import visible
from dnsrig.report.first import First, in_words
from dnsrig.report.fitting import FittingTable
from dnsrig.report.gather import Entry, TrapReport, gather
from dnsrig.report.verdicts import Verdict
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

MOST_CHECKS = 6
"""Checks that did not pass whose reasons are printed; the report has them all."""


MOST_LINES = 10
"""Most lines of the first screen."""
WIDEST = 120
"""Most columns of a line of the first screen: longer lines are hard to read."""


@dataclass(frozen=True)
class FirstScreen:
    """The question, the verdicts and the worst findings, in at most ``MOST_LINES`` lines where the terminal has 80
    columns: verdicts that do not fit are counted."""

    first: First
    last: str
    """How to see the rest."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(WIDEST, options.max_width)
        head = _wrapped(console, self.first.question, width)
        note = _wrapped(console, self.first.verdicts.note, width) if self.first.verdicts.note else []
        worst = self._worst(width)
        room = MOST_LINES - len(head) - len(note) - len(worst) - 1
        yield Text("\n".join(head), style="bold")
        yield from map(Text, [*note, *self._verdicts(console, width, room), *worst, self.last])

    def _worst(self, width: int) -> list[str]:
        """A line for each of the worst findings, and the remedy of the worst that has one."""
        lines = [_cut(f"{line.weight}: {line}", width) for line in self.first.headlines]
        if self.first.more:
            lines[-1] = _cut(lines[-1], width - len(more := f" (+{self.first.more} more)")) + more
        remedies = enumerate((line.remedy for line in self.first.headlines), start=1)
        if with_remedy := next(((number, remedy) for number, remedy in remedies if remedy), None):
            number, remedy = with_remedy
            lines.insert(number, _cut(f"  remedy: {remedy}", width))
        return lines or ["No trap found anything odd."]

    def _verdicts(self, console: Console, width: int, room: int) -> list[str]:
        """The verdicts that fit into ``room`` lines, and the number of the others."""
        shown = self.first.verdicts.shown
        said = [_wrapped(console, _with_figures(verdict), width - 2) for verdict in shown]
        if sum(map(len, said)) + bool(self._left(len(said))) > room:
            said = [_wrapped(console, _with_figures(verdict, width - 2), width - 2) for verdict in shown]
        fits = len(said)
        while fits > 1 and sum(map(len, said[:fits])) + bool(self._left(fits)) > room:
            fits -= 1
        left = self._left(fits)
        lines = [f"{'  ' if number else '• '}{line}" for each in said[:fits] for number, line in enumerate(each)]
        if len(lines) > (most := max(1, room - bool(left))):
            lines = [*lines[: most - 1], f"{lines[most - 1][: width - 1]}…"]
        return [*lines, *([f"• {left:,} more"] if left else [])]

    def _left(self, fits: int) -> int:
        return self.first.verdicts.more + len(self.first.verdicts.shown) - fits


def _with_figures(verdict: Verdict, width: float = math.inf) -> str:
    """A verdict, with the figures of both sides if they fit into one line."""
    text = visible(str(verdict))
    return whole if verdict.figures and len(whole := f"{text} ({visible(verdict.figures)})") <= width else text


def _wrapped(console: Console, text: str, width: int) -> list[str]:
    return [line.plain.rstrip() for line in Text(visible(text)).wrap(console, width)]


def _cut(text: str, width: int) -> str:
    text = visible(text)
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def terminal_first(run: Run, findings: Iterable[Finding], last: str) -> FirstScreen:
    """The answer of a run in ten lines; ``last`` is the last of them."""
    return FirstScreen(in_words(run, gather(run, findings)), last)


def terminal_table(run: Run, findings: Iterable[Finding] | None = None) -> FittingTable:
    """One row a variant: its axes, repeats, the main metric, percent of the baseline, and what was odd.

    ``findings`` saves examining the run again where they are at hand.
    """
    reports = gather(run, traps.examine(run) if findings is None else findings)
    metric = describe(main_metric(run))
    rows = variant_table(run, metric.name)
    compared = any(row.baseline is not None for row in rows)
    notes = [f"of baseline: {wording.of_what(rows)}; [..]: its 95 % interval"] if compared else []
    notes += [visible(f"{row.variant.label}: {said}") for row in rows if (said := wording.disagreement(row.comparison))]
    notes += [f"a..b {metric.unit}: {wording.both_ends(run)}"] if any(map(wording.is_between, rows)) else []
    notes += [line] if (line := elsewhere.summary(run)) else []
    notes += [f"chance: {reach} (after Holm)"] if (reach := wording.reach(run, rows)) else []
    notes += [visible(line)] if (line := setting.queries(run)) else []
    # Where there is no certificate the trap says so.
    notes += [visible(line)] if (line := calibrated.line(run.manifest)) != calibrated.NOT_CALIBRATED else []
    return FittingTable(
        title=visible(f"{metric.title}, of the n repeats that are done"),
        columns=[
            *map(visible, run.manifest.axes),
            *("n", "median", "min..max"),
            *(["of baseline"] if compared else []),
            "odd",
        ],
        axes=len(run.manifest.axes),
        rows=[[*_row(run, row, metric.unit, compared=compared), "\n".join(_odd(row, reports))] for row in rows],
        notes=[*_reasons(run), *notes],
        apart="odd",
    )


def _row(run: Run, row: VariantRow, unit: str, *, compared: bool) -> list[str]:
    """The cells of a variant: its axes, n, median, range and, where anything is compared, percent of the baseline."""
    axes = [wording.parameter(run, row.variant.parameters[axis]).replace(" ", "\n") for axis in run.manifest.axes]
    median, spread = wording.median_and_range(row.samples, unit)
    rate = wording.asked(run, row).partition(" queries")[0]
    relative = [wording.relative(run, row), wording.beneath(run, row)] if compared else []
    lines = [[median, *([f"{rate}/s"] if rate else [])], [spread], *([[part for part in relative if part]] * compared)]
    return [*map(_lines, [axis.splitlines() for axis in axes]), _repeats(row), *map(_lines, lines)]


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(map(visible, lines))


def terminal_findings(run: Run, findings: Iterable[Finding]) -> Group:
    """Findings, each with its remedy; what traps could not judge; and what is clear, in one line."""
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
    for alike in report.found_alike:
        more = f" (and {figures.count(len(alike) - 1, 'variant')} more alike)" if len(alike) > 1 else ""
        blocks.append(_indented(f"{_subject(alike[0])}: {alike[0].summary}{more}"))
    return blocks + [_indented(f"remedy: {remedy}") for remedy in report.remedies]


def _indented(text: str) -> Padding:
    return Padding(Text(visible(text)), (0, 0, 0, 2))


def _subject(entry: Entry) -> str:
    return f"{entry.subject}, {entry.where}" if entry.where else entry.subject


def _repeats(row: VariantRow) -> str:
    """``5``, or ``4 of 5`` where one does not count."""
    done, total = max(row.outcomes["done"], len(row.samples.measured)), row.outcomes.total()
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
