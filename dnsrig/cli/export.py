"""`dnsrig export`: a run's figures and charts as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    app.command("export")(command)


def command(
    run: Annotated[Path, typer.Argument(help="directory of a run")],
    format: Annotated[
        str,
        typer.Option(
            help="csv or parquet: one row a trial and metric; pairs: versions of a server beside each other, as JSON; "
            "png or svg: every chart"
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="folder to write to; by default RUN/export")] = None,
) -> None:
    """Export RUN. The paths written are printed, one a line.

    Exit status 4 if something of it failed, and the rest was written.
    """
    from dnsrig.analysis.read import Run
    from dnsrig.cli.report import end
    from dnsrig.report import export

    opened = Run.open(run)
    for path in export(opened, format, out or run / "export"):
        print(path)
    end(opened)
