"""Options that several commands have. An option name has one meaning in all commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Scale = Annotated[
    str, typer.Option(metavar="SCALE", help="size of the experiment: quick, standard or published (the source's own)")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="change a value of the experiment, or an axis; repeatable"),
]
Seed = Annotated[int | None, typer.Option(help="seed of the order of trials; recorded in the run in any case")]
MaxTrials = Annotated[int, typer.Option(help="refuse to plan more trials than this")]
Runs = Annotated[Path, typer.Option(metavar="DIR", help="folder of the runs")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="metric to show, with or without its unit (`dnsrig list metrics`); repeatable",
    ),
]
MayDiffer = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="condition that may differ between the runs, by its name or the beginning of it (`links`, "
        "`machine.kernel`); repeatable",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="print what would be measured, and how long it takes")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document (docs/reference/json.md)")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print no progress")]


def experiments(incomplete: str) -> list[str]:
    """Names that a shell offers for an experiment."""
    from dnsrig.experiment import model

    return [name for name in model.builtin() if name.startswith(incomplete)]
