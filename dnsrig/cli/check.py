"""`dnsrig check`: is this machine fit to measure on?"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from dnsrig.cli import _console, _on
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.lab.remark import Remark

STYLES = {"good": "green", "note": "yellow", "bad": "red", "not known": "dim"}


def add(app: typer.Typer) -> None:
    app.command("check")(command)


def command(on: _on.Option = "") -> None:
    """Look at this machine: what dnsrig needs, and what results may depend on, each with its remedy.

    With --on, at all of several machines, and at what differs between them. Leaves nothing behind. Exit status 1 if
    something is missing without which dnsrig cannot work.
    """
    from dnsrig.lab import check

    grades = _machines(on) if on else _show(list(check.remarks()))
    sys.exit(1 if "bad" in grades else 0)


def _show(remarks: Sequence[Remark]) -> set[str]:
    """Print a table; returns the grades that are in it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("what", "", "says"):
        table.add_column(column, overflow="fold")
    for remark in remarks:
        says = [remark.says, *([f"remedy: {remark.remedy}"] if remark.remedy else [])]
        table.add_row(remark.what, Text(remark.grade, style=STYLES[remark.grade]), "\n".join(map(visible, says)))
    _console.out().print(table)
    return {remark.grade for remark in remarks}


def _machines(machines: str) -> set[str]:
    from dnsrig.experiment.machines import spread, there
    from dnsrig.lab.remark import Remark

    console, grades = _console.out(), set[str]()
    with _on.places(machines) as places:
        looked = spread.look(places)
        asked = {place.name: place.submit(there.remarks) for place in places if not looked[place.name]["holder"]}
        for name, told in looked.items():
            console.print(f"machine {name}", style="bold")
            if name in asked:
                grades |= _show([Remark(**one) for one in asked[name].result()])
            else:
                console.print(visible(f"in use, so it is not looked at: {told['holder']}"))
    _show_differences({name: told["conditions"] for name, told in looked.items()})
    return grades


def _show_differences(machines: Mapping[str, Mapping[str, Any]]) -> None:
    """Of their conditions, but for what every boot changes."""
    from dnsrig.analysis.run_differences import CHANGING
    from dnsrig.certificate import CITED
    from dnsrig.report import conditions

    lasting = {name: {k: v for k, v in told.items() if k not in (*CHANGING, CITED)} for name, told in machines.items()}
    found, _ = conditions.as_table(conditions.differing({n: conditions.flatten(told) for n, told in lasting.items()}))
    console = _console.out()
    console.print("what differs between them", style="bold")
    for fact, cells in found.items():
        console.print(visible(f"{fact}: {', '.join(f'{name} {cell}' for name, cell in zip(machines, cells))}"))
    if not found:
        console.print("nothing that is known of them")
