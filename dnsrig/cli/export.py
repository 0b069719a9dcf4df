"""`dnsrig export`: a run's figures, charts and trials as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dnsrig import outputs
from dnsrig.errors import UsageError


def add(app: typer.Typer) -> None:
    app.command("export")(command)


def command(
    run: Annotated[Path, typer.Argument(help="directory of a run")],
    format: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="csv or parquet: a row for each trial and metric; json or markdown: the tables; pairs: versions of a "
            "server side by side, as JSON; png or svg: every chart; paper: charts, their data and captions, and the "
            "experiment; perfetto: a trace of each trial; speedscope: the CPU profiles of each trial",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="folder to write to; default: RUN/export, or a folder of the cache if RUN belongs to another user",
        ),
    ] = None,
    trial: Annotated[
        str | None, typer.Option(metavar="VARIANT/REPEAT", help="export one trial only, e.g. `v03/2`; default: all")
    ] = None,
) -> None:
    """Export a run's figures, charts and trials.

    Example: dnsrig export runs/tour/20260101T120000Z-abcd --format csv

    Prints the paths that it writes, one a line.

    Exit status: 4 a part failed, and the rest was written.
    """
    from dnsrig.cli.report import end, tell_owner
    from dnsrig.report import export, place
    from dnsrig.runs.run import Run

    opened = Run.open(run)
    tell_owner(run, out)
    to = out or place(run) / "export"
    if run.resolve() == to.resolve() or (run / "trials").resolve() in (to.resolve(), *to.resolve().parents):
        raise UsageError(f"{to} contains files of the run itself", hint="leave --out out to write to RUN/export")
    outputs.check_folder(to, (path for path in run.resolve().rglob("*") if to.resolve() not in path.parents))
    if trial is not None:
        opened = opened.only(trial)
    for path in export(opened, format, to):
        print(path)
    end(opened)
