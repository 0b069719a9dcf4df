"""`dnsrig report`: findings, summary and report of a run, written again from its trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig import files
from dnsrig.cli import _console, _options
from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INCOMPLETE, EXIT_NO_VALID_TRIAL
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.comparison.compare import TwoRuns
    from dnsrig.report import Written
    from dnsrig.runs.run import Run


def add(app: typer.Typer) -> None:
    app.command("report")(command)


def command(
    run: Annotated[Path, typer.Argument(help="directory of a run")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="folder to write to; default: RUN, or a folder of the cache if RUN belongs to another user",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="print the table of all variants, every finding and every failed check")
    ] = False,
    as_json: _options.Json = False,
) -> None:
    """Write the report of a run again.

    Example: dnsrig report runs/tour/20260101T120000Z-abcd

    Examines RUN with all traps, writes findings.json, summary.parquet and report.html, and prints the answer: the
    question, a sentence for each comparison, and the findings that matter most. --full prints tables instead. The
    metrics of each trial are computed again, so that new metrics appear in the report of an old run.

    Exit status: 4 a metric, a trap or a chart raised an exception, or files of a trial are damaged: the rest is
    written, and what is missing is reported; 6 no trial of some variant is valid.
    """
    written = write(run, out)
    if as_json:
        print_json(written)
    else:
        show(written, full=full)
    end(written.run)


def write(run: Path, out: Path | None = None) -> Written:
    """Write the report."""
    from dnsrig.report import write_report

    tell_owner(run, out)
    return write_report(run, out)


def show(written: Written, *, full: bool = False, bars: bool = False) -> None:
    """Print the answer of a report, or with ``full`` its tables.

    ``bars``: before it, a bar for each variant, and who was the bottleneck.
    """
    from rich.text import Text

    from dnsrig.report import (
        bottleneck,
        terminal_bars,
        terminal_failures,
        terminal_findings,
        terminal_first,
        terminal_table,
    )

    console = _console.out()
    if bars:
        console.print(terminal_bars(written.run))
        if line := bottleneck.sentence(written.run, written.findings):
            console.print(Text(visible(line)))
    if full:
        console.print(terminal_table(written.run, written.findings))
        console.print(terminal_findings(written.run, written.findings))
        console.print(terminal_failures(written.run))
        console.print(f"report: {written.path}", soft_wrap=True)
    else:
        last = f"more: {written.path}, or `dnsrig report {written.run.directory} --full`"
        console.print(terminal_first(written.run, written.findings, visible(last)), soft_wrap=True)


def print_json(written: Written, judged: TwoRuns | None = None) -> None:
    """Print the report as one JSON document, with the comparison that rules judged if there is one."""
    from dnsrig.report import comparison
    from dnsrig.report.exports import json as tables
    from dnsrig.rundir import Findings

    found = Findings(findings=written.findings, failures=list(written.run.failures)).model_dump(mode="json")
    told = tables.document(written.run) | {
        "directory": str(written.run.directory),
        "report": str(written.path),
        "findings": found["findings"],
        "failures": found["failures"],
    }
    if judged is not None:
        told["compared"] = comparison.as_json(judged)
    _console.print_document(told)


def tell_owner(run: Path, out: Path | None) -> None:
    """Report that nothing is written into the run of another user, unless ``out`` names a folder."""
    if run.is_dir() and out is None and (owner := files.other_owner(run)):
        _console.err().print(visible(f"{run} belongs to {owner}: nothing is written into it"), soft_wrap=True)


def end(run: Run) -> None:
    """Exit with the status that fits the invalid trials, failures and damaged files of ``run``."""
    failed = list(run.failures)
    if failed:
        names = ", ".join(sorted({f"{failure.part} {failure.name}" for failure in failed}))
        complain(f"failed, and left out: {names}", f"{failed[0].error}")
    if nothing := run.without_valid_trial:
        complain(
            f"no trial is valid of {', '.join(variant.label for variant in nothing)}: there is no result for it",
            "the report has the reasons; remove the cause, then repeat these trials with `dnsrig run --resume RUN "
            "--redo-invalid`",
        )
        raise typer.Exit(EXIT_NO_VALID_TRIAL)
    if failed or run.is_damaged:
        raise typer.Exit(EXIT_INCOMPLETE)
