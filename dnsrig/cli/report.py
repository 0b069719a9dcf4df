"""`dnsrig report`: findings, summary and report of a run, written again from its trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def add(app: typer.Typer) -> None:
    app.command("report")(command)


def command(run: Annotated[Path, typer.Argument(help="directory of a run")]) -> None:
    """Examine RUN with all traps, write findings.json, summary.parquet and report.html, and print the short table."""
    show(run)


def show(run: Path) -> None:
    from dnsrig.analysis.read import Run
    from dnsrig.report import terminal_findings, terminal_table, write_report
    from dnsrig.rundir import Findings, read_json

    path = write_report(run)
    opened = Run.open(run)
    findings = read_json(run / "findings.json", Findings).findings
    console = Console(highlight=False)
    console.print(terminal_table(opened, findings))
    console.print(terminal_findings(opened, findings))
    console.print(f"report: {path}", markup=False, soft_wrap=True)
