"""`dnsrig import`: what another tool measured, as a run that `report`, `compare` and `export` read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from dnsrig.errors import UsageError

RUNS = Path("runs/imported")
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}


def add(app: typer.Typer) -> None:
    app.command("import")(command)


def command(
    tool: Annotated[
        str,
        typer.Argument(
            help="dnsperf, resperf, flamethrower, shotgun, kxdpgun, dnspyre, hlog or dns-metrics (`dnsrig list importers`)"
        ),
    ],
    files: Annotated[list[Path], typer.Argument(help="what the tool wrote: each file is a repeat")],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="what the result is called in tables and charts")],
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="directory of the run to make, or of imported results to add this one to; by default runs/imported/NAME",
        ),
    ] = None,
    counted_from: Annotated[
        Literal["due", "sending"] | None,
        typer.Option(help="when the clock of a latency started, for files that do not say it"),
    ] = None,
    unit: Annotated[
        Literal["ns", "us", "ms"], typer.Option(help="of values in a .hlog of another program than dnsrig")
    ] = "ns",
) -> None:
    """Make a run of what TOOL measured elsewhere, and print its directory.

    It holds what the tool tells and nothing else: latencies as exact as they are, whether they count from the moment at
    which a query was due or from that at which it was sent, and what is missing. Charts draw buckets as wide as they
    are, and `compare` says where two runs count from different moments.

    Examples: dnsrig import dnsperf before-*.txt --as before; dnsrig import kxdpgun k1.json k2.json --as kxdpgun --to
    runs/imported/before; dnsrig import hlog other.hlog --as other --counted-from sending --unit us
    """
    from dnsrig.importers import Asked, _run

    if not name.strip() or len(name) > 60:
        raise UsageError("--as needs a name of at most 60 characters")
    directory = to or RUNS / (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "result")
    if to is None and directory.exists():
        raise UsageError(f"{directory} is there already", hint="choose another name, or add to a run with --to")
    sources = _run.read(tool, files, Asked(counted_from, UNITS[unit]))
    _run.write(tool, name, sources, directory)
    print(directory)
