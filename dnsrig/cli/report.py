"""`dnsrig report`: findings, summary and report of a run, written again from its trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dnsrig import files
from dnsrig.cli import _console
from dnsrig.cli._app import complain
from dnsrig.cli._exits import EXIT_INCOMPLETE, EXIT_NO_VALID_TRIAL
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.analysis.read import Run


def add(app: typer.Typer) -> None:
    app.command("report")(command)


def command(
    run: Annotated[Path, typer.Argument(help="directory of a run")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="folder to write to; by default RUN, or a folder of the cache if RUN belongs to another user",
        ),
    ] = None,
) -> None:
    """Examine RUN with all traps, write findings.json, summary.parquet and report.html, and print the short table.

    A trial's metrics are computed again, so new ones reach old runs. Exit status 6 if no trial of some variant is
    valid; 4 if a metric, a trap or a chart raised an exception, or a trial's files are damaged: the rest is there, and
    what is missing is reported.
    """
    end(show(run, out))


def show(run: Path, out: Path | None = None) -> Run:
    """Write the report and print it short; returns the run, with what failed."""
    from dnsrig.report import terminal_failures, terminal_findings, terminal_table, write_report

    tell_owner(run, out)
    written = write_report(run, out)
    console = _console.out()
    console.print(terminal_table(written.run, written.findings))
    console.print(terminal_findings(written.run, written.findings))
    console.print(terminal_failures(written.run))
    console.print(f"report: {written.path}", soft_wrap=True)
    return written.run


def tell_owner(run: Path, out: Path | None) -> None:
    """Report that nothing is written into a run of another user, where that is not what was asked for."""
    if run.is_dir() and out is None and (owner := files.other_owner(run)):
        _console.err().print(visible(f"{run} belongs to {owner}: nothing is written into it"), soft_wrap=True)


def end(run: Run) -> None:
    """Exit as the invalid trials, failures and damaged files of ``run`` want it."""
    failed = list(run.failures)
    if failed:
        names = ", ".join(sorted({f"{failure.part} {failure.name}" for failure in failed}))
        complain(f"failed, and left out: {names}", f"{failed[0].error}")
    if nothing := run.without_valid_trial:
        complain(
            f"no trial is valid of {', '.join(variant.label for variant in nothing)}: nothing can be said of it",
            "the report has the reasons; after the cause is removed, `dnsrig run --resume RUN --redo-invalid` measures "
            "these trials again",
        )
        raise typer.Exit(EXIT_NO_VALID_TRIAL)
    if failed or run.is_damaged:
        raise typer.Exit(EXIT_INCOMPLETE)
