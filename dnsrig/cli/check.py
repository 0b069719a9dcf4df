"""`dnsrig check`: is this machine fit to measure on?"""

from __future__ import annotations

import sys

import typer
from rich.table import Table
from rich.text import Text

from dnsrig.cli import _console
from dnsrig.text import visible

STYLES = {"good": "green", "note": "yellow", "bad": "red"}


def add(app: typer.Typer) -> None:
    app.command("check")(command)


def command() -> None:
    """Look at this machine: what dnsrig needs, and what results may depend on, each with its remedy.

    Leaves nothing behind. Exit status 1 if something is missing without which dnsrig cannot work.
    """
    from dnsrig.lab import check, network

    network.clean()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("what", "", "says"):
        table.add_column(column, overflow="fold")
    found = list(check.remarks())
    for remark in found:
        says = [remark.says, *([f"remedy: {remark.remedy}"] if remark.remedy else [])]
        table.add_row(remark.what, Text(remark.grade, style=STYLES[remark.grade]), "\n".join(map(visible, says)))
    _console.out().print(table)
    sys.exit(1 if any(remark.grade == "bad" for remark in found) else 0)
