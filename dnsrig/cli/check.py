"""`dnsrig check`: is this machine ready to measure?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from dnsrig.cli import _console, _on, _options
from dnsrig.text import visible

if TYPE_CHECKING:
    from dnsrig.lab.disturbances import Remark

STYLES = {"good": "green", "note": "yellow", "bad": "red", "not known": "dim"}


def add(app: typer.Typer) -> None:
    app.command("check")(command)


def command(on: _on.Option = "", as_json: _options.Json = False) -> None:
    """Check whether this machine is ready to measure.

    Example: dnsrig check

    Prints what dnsrig needs and what may affect results, each with a remedy. With --on it checks several machines, and
    prints how they differ. It leaves nothing behind.

    Exit status: 1 something is missing that dnsrig cannot work without.
    """
    from dnsrig.lab import check

    sys.exit(_machines(on, as_json) if on else _here(list(check.remarks()), as_json))


def _here(remarks: Sequence[Remark], as_json: bool) -> int:
    if as_json:
        _console.print_document(_document(remarks))
    else:
        _show(remarks)
    return _status(remarks)


def _status(remarks: Iterable[Remark]) -> int:
    return 1 if any(remark.grade == "bad" for remark in remarks) else 0


def _document(remarks: Sequence[Remark]) -> dict[str, Any]:
    return {"ready": _status(remarks) == 0, "remarks": [asdict(remark) for remark in remarks]}


def _show(remarks: Sequence[Remark]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("what", "", "finding"):
        table.add_column(column, overflow="fold")
    for remark in remarks:
        says = [remark.says, *([f"remedy: {remark.remedy}"] if remark.remedy else [])]
        table.add_row(remark.what, Text(remark.grade, style=STYLES[remark.grade]), "\n".join(map(visible, says)))
    _console.out().print(table)


def _machines(machines: str, as_json: bool) -> int:
    """Check each of ``machines``; one that is in use is not touched."""
    from dnsrig.experiment import spread, trial_calls
    from dnsrig.lab.disturbances import Remark

    with _on.workers(machines) as workers:
        looked = spread.look(workers)
        asked = {
            worker.name: worker.submit(trial_calls.remarks) for worker in workers if not looked[worker.name]["holder"]
        }
        found = {name: [Remark(**one) for one in pending.result()] for name, pending in asked.items()}
    differing = _differences({name: seen["conditions"] for name, seen in looked.items()})
    if as_json:
        of_each = {
            name: _document(found[name]) if name in found else {"in_use_by": seen["holder"]}
            for name, seen in looked.items()
        }
        _console.print_document({"machines": of_each, "differences": differing})
    else:
        for name, seen in looked.items():
            _console.out().print(f"machine {name}", style="bold")
            if name in found:
                _show(found[name])
            else:
                _console.out().print(visible(f"in use, and therefore not checked: {seen['holder']}"))
        _show_differences(differing)
    return _status(remark for remarks in found.values() for remark in remarks)


def _differences(machines: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Condition -> machine -> value, where machines differ, without conditions that change at every boot."""
    from dnsrig.certificate import CITED
    from dnsrig.comparison.run_differences import CHANGING
    from dnsrig.report import conditions

    lasting = {name: {k: v for k, v in seen.items() if k not in (*CHANGING, CITED)} for name, seen in machines.items()}
    found, _ = conditions.as_table(conditions.differing({n: conditions.flatten(seen) for n, seen in lasting.items()}))
    return {fact: dict(zip(machines, map(str, cells))) for fact, cells in found.items()}


def _show_differences(found: Mapping[str, Mapping[str, str]]) -> None:
    console = _console.out()
    console.print("differences between the machines", style="bold")
    for fact, values in found.items():
        console.print(visible(f"{fact}: {', '.join(f'{name} {value}' for name, value in values.items())}"))
    if not found:
        console.print("none that is known")
