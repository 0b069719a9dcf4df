"""`dnsrig check`: is this machine fit to measure on?"""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

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
    for column in ("what", "", "says", "remedy"):
        table.add_column(column, overflow="fold")
    found = list(check.remarks())
    for remark in found:
        table.add_row(
            remark.what, f"[{STYLES[remark.grade]}]{remark.grade}[/]", escape(remark.says), escape(remark.remedy)
        )
    Console(highlight=False).print(table)
    sys.exit(1 if any(remark.grade == "bad" for remark in found) else 0)
