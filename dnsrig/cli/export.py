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
            help="csv or parquet: one row a trial and metric; json or markdown: the tables; pairs: versions of a server "
            "beside each other, as JSON; png or svg: every chart; paper: charts, their data and captions, and the "
            "experiment; perfetto: each trial as a trace; speedscope: each trial's CPU profiles"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="folder to write to; by default RUN/export, or one of the cache if RUN belongs to another user"
        ),
    ] = None,
    trial: Annotated[
        str | None, typer.Option(metavar="VARIANT/REPEAT", help="of one trial only, e.g. `v03/2`; by default of all")
    ] = None,
) -> None:
    """Export RUN. The paths written are printed, one a line.

    Exit status 4 if something of it failed, and the rest was written.
    """
    from dnsrig.analysis.read import Run
    from dnsrig.cli.report import end, tell_owner
    from dnsrig.report import export, place

    opened = Run.open(run)
    tell_owner(run, out)
    to = out or place(run) / "export"
    if run.resolve() == to.resolve() or (run / "trials").resolve() in (to.resolve(), *to.resolve().parents):
        raise UsageError(f"{to} has files of the run itself", hint="without --out they are written to RUN/export")
    outputs.check_folder(to, (path for path in run.resolve().rglob("*") if to.resolve() not in path.parents))
    if trial is not None:
        opened = opened.only(trial)
    for path in export(opened, format, to):
        print(path)
    end(opened)
