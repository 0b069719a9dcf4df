"""`dnsrig import`: what another tool measured, as a run that `report`, `compare` and `export` read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dnsrig.cli import _console, _units
from dnsrig.errors import UsageError
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.importers._run import Source
    from dnsrig.rundir import Scalar

RUNS = Path("runs/imported")
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}


def add(app: typer.Typer) -> None:
    app.command("import")(command)


def command(
    tool: Annotated[
        str,
        typer.Argument(
            help="dnsperf, resperf, flamethrower, shotgun, kxdpgun, dnspyre, load, hlog or dns-metrics (`dnsrig list importers`)"
        ),
    ],
    files: Annotated[list[Path], typer.Argument(help="files that the tool wrote, one for each repeat")],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="name of the result in tables and charts")],
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="directory of the run to make, or of imported results to add to; default: runs/imported/NAME",
        ),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="value of an axis that the files do not contain, e.g. rate=5000; repeatable",
        ),
    ] = None,
    counted_from: Annotated[
        Literal["due", "sending"] | None,
        typer.Option(help="start of each latency, if the files do not contain it: the due time or the sending time"),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="time after which the tool gave up a query, e.g. 5s, if the files do not contain it; 1ms to 1h",
        ),
    ] = None,
    unit: Annotated[
        Literal["ns", "us", "ms"], typer.Option(help="unit of the values in a .hlog of another program than dnsrig")
    ] = "ns",
) -> None:
    """Turn the results of another tool into a run.

    Examples:

        dnsrig import dnsperf before-*.txt --as before
        dnsrig import kxdpgun k1.json k2.json --as kxdpgun \\
            --to runs/imported/before
        dnsrig import hlog other.hlog --as other --counted-from sending --unit us
        dnsrig import load 1.jsonl 2.jsonl --as mine
        dnsrig import hlog measured/latency.hlog --as mine --axis transport=udp

    Prints the directory of the run, which `report`, `compare` and `export` read. The run contains what the tool
    reported and nothing else: latencies with their precision, whether they count from the due time or the sending time
    of a query, and what is missing. Charts draw buckets as wide as they are, and `compare` reports if two runs count
    from different moments. A query without an answer counts as the tool's timeout. Lines and fields that are not
    understood are reported on standard error, and in the report.
    """
    from dnsrig.importers import Asked, S, _run

    if not name.strip() or len(name) > 60:
        raise UsageError("--as needs a name of 1 to 60 characters", hint="e.g. --as before")
    directory = to or RUNS / (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "result")
    if to is None and directory.exists():
        raise UsageError(f"{directory} exists", hint="choose another name, or add to the run with --to")
    timeout_ns = None if timeout is None else round(_units.duration_s(timeout, "--timeout", 0.001, 3600) * S)
    sources = _run.read(tool, files, Asked(counted_from, UNITS[unit], timeout_ns))
    _run.write(tool, name, sources, directory, _axes(axis or []))
    complaints = _console.err(soft_wrap=True)
    for text, of in _by_sentence(sources).items():
        complaints.print(visible(f"{of[0]}{f' and {len(of) - 1} more' if of[1:] else ''}: {text}"))
    print(directory)


def _axes(texts: list[str]) -> dict[str, Scalar]:
    """Name -> value of each axis; a value of digits is a number."""
    found: dict[str, Scalar] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", name) or name == "result" or len(value) > 60:
            raise UsageError(f"--axis {text[:60]!r}", hint="NAME=VALUE, e.g. --axis transport=udp --axis rate=5000")
        found[name] = int(value) if re.fullmatch(r"\d{1,15}", value, re.ASCII) else value
    return found


def _by_sentence(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Sentence about something missing -> the files that it is missing in."""
    found: dict[str, list[str]] = {}
    for source in sources:
        for text in source.record.missing:
            found.setdefault(text, []).append(source.record.file)
    return found
