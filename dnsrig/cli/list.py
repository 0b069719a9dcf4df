"""`dnsrig list`: experiments, servers, traps, metrics."""

from __future__ import annotations

import tomllib
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table

from dnsrig.errors import UsageError

WHAT = ("experiments", "servers", "traps", "metrics")


def add(app: typer.Typer) -> None:
    app.command("list")(command)


def command(
    what: Annotated[str | None, typer.Argument(help=f"one of {', '.join(WHAT)}; by default all")] = None,
) -> None:
    """Show what there is: experiments, servers with the exact versions of their sources, traps, metrics."""
    if what is not None and what not in WHAT:
        raise UsageError(f"there is nothing called {what!r} to list", hint=f"one of {', '.join(WHAT)}")
    sections = {"experiments": _experiments, "servers": _servers, "traps": _traps, "metrics": _metrics}
    Console(highlight=False).print(Group(*(sections[name]() for name in WHAT if what in (None, name))))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _experiments() -> RenderableType:
    from dnsrig.experiment import model

    table = _table("experiments", "name", "procedure", "question")
    for name, path in model.builtin().items():
        raw = tomllib.loads(path.read_text())
        table.add_row(name, raw["procedure"], raw["question"])
    return table


def _servers() -> RenderableType:
    from dnsrig.servers import all_drivers, sources

    table = _table("\nservers", "server", "version", "roles", "where")
    for kind, found in sources.installed().items():
        server = all_drivers()[kind]
        for source in found:
            table.add_row(source.name, source.version, ", ".join(server.roles), source.root or "this machine")
        if not found:
            remedy = f"{server.title}: `dnsrig servers install {kind}@forky`"
            table.add_row(kind, "-", ", ".join(server.roles), remedy)
    return Group(table, _features())


def _features() -> RenderableType:
    """What each driver can do, by role: since which version of the server."""
    from dnsrig.servers import all_drivers, feature_table

    drivers = all_drivers()
    table = _table("\nwhat they can do, since version", "as", "feature", *drivers)
    for role, feature, since in feature_table():
        table.add_row(role, feature, *since)
    for server in drivers.values():
        for role, features in server.never_together.items():
            table.add_row(role, f"{server.title}: not {' and '.join(sorted(features))} together")
    return table


def _traps() -> RenderableType:
    from dnsrig.traps import all_traps

    table = _table("\ntraps", "id", "what it looks for")
    for trap in all_traps().values():
        table.add_row(trap.id, trap.title)
    return table


def _metrics() -> RenderableType:
    from dnsrig.analysis.metrics import all_metrics

    table = _table("\nmetrics", "name", "unit", "better", "from which moment to which")
    for metric in all_metrics().values():
        table.add_row(metric.name, metric.unit, metric.better, metric.definition)
    return table
