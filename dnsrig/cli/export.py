"""`dnsrig export`: a run's figures and charts as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("export")(command)


def command(
    run: Annotated[Path, typer.Argument(help="directory of a run")],
    format: Annotated[str, typer.Option(help="csv or parquet: one row a trial and metric; png or svg: every chart")],
    out: Annotated[Path | None, typer.Option(help="folder to write to; by default RUN/export")] = None,
) -> None:
    """Export RUN. The paths written are printed, one a line."""
    from dnsrig.report import export

    for path in export(run, format, out or run / "export"):
        print(path)
