"""`dnsrig list`: whatever an experiment can be made of, and what looks at its results."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dnsrig.cli import _console
from dnsrig.errors import UsageError

WHAT = (
    "experiments",
    "procedures",
    "datasets",
    "streams",
    "servers",
    "traps",
    "metrics",
    "charts",
    "exports",
    "importers",
)
NO_BREAK = "\N{NO-BREAK SPACE}"
ALWAYS = "0.0"
"""Since this version: of servers that have had it from the start."""


def add(app: typer.Typer) -> None:
    app.command("list")(command)


def command(
    what: Annotated[str | None, typer.Argument(help=f"one of {', '.join(WHAT)}; by default all")] = None,
) -> None:
    """Show what there is: experiments and what they are made of, servers with exact versions, traps, metrics, charts,
    exports, and the tools whose results are imported."""
    if what is not None and what not in WHAT:
        raise UsageError(f"there is nothing called {what!r} to list", hint=f"one of {', '.join(WHAT)}")
    sections: dict[str, Callable[[int], RenderableType]] = {
        "experiments": _experiments,
        "procedures": _procedures,
        "datasets": _datasets,
        "streams": _streams,
        "servers": _servers,
        "traps": _traps,
        "metrics": _metrics,
        "charts": _charts,
        "exports": _exports,
        "importers": _importers,
    }
    console = _console.out()
    parts = [Group(Text(name, style="bold"), sections[name](console.width)) for name in WHAT if what in (None, name)]
    for number, part in enumerate(parts):
        console.print(*([""] if number else []), part, sep="\n")


def _table(rows: Iterable[Iterable[str]]) -> Table:
    """Short columns whole, the last one wrapped."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row))
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def _paragraphs(items: Iterable[tuple[str, str]]) -> Group:
    """A heading, and beneath it what there is to say."""
    return Group(*(Group(Text(head), Padding(Text(text), (0, 0, 0, 4))) for head, text in items))


def _headline(module: object) -> str:
    """The first paragraph of its docstring, as a clause."""
    return " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split()).rstrip(".")


def _experiments(width: int) -> RenderableType:
    from dnsrig.experiment import model

    groups: list[RenderableType] = []
    for audience, found in model.by_audience().items():
        groups += [
            Text(f"{audience[:1].upper()}{audience[1:]}"),
            _table((f"  {name}", raw["question"]) for name, raw in found.items()),
        ]
    return Group(*groups)


def _procedures(width: int) -> RenderableType:
    from dnsrig.procedures import all_procedures

    return _table((name, module.DESCRIPTION) for name, module in all_procedures().items())


def _datasets(width: int) -> RenderableType:
    from dnsrig import datasets

    return _with_parameters(datasets.kinds())


def _streams(width: int) -> RenderableType:
    from dnsrig import streams

    return _with_parameters(streams.kinds())


def _with_parameters(kinds: Mapping[str, ModuleType]) -> RenderableType:
    return _table((name, f"{made.DESCRIPTION}; parameters: {', '.join(made.DEFAULTS)}") for name, made in kinds.items())


def _servers(width: int) -> RenderableType:
    from dnsrig.servers import all_drivers, sources

    rows, missing = [], []
    for kind, found in sources.installed().items():
        server = all_drivers()[kind]
        rows += [(source.name, source.version, ", ".join(server.roles)) for source in found]
        if not found:
            missing.append((f"{server.title} is not installed", f"dnsrig servers install {kind}@forky"))
    absent = [_table(missing)] if missing else []
    return Group(_table(rows), *absent, Text("\nwhat they can do, since version"), _features(width))


def _features(width: int) -> RenderableType:
    """What each driver can do, by role: since which version of the server."""
    from dnsrig.servers import all_drivers, feature_table

    drivers, by_role = all_drivers(), dict[str, dict[str, list[str]]]()
    for role, feature, since in feature_table():
        for kind, version in zip(drivers, since):
            if version != "no":
                words = feature if version == ALWAYS else f"{feature} {version}"
                by_role.setdefault(role, {}).setdefault(kind, []).append(words)
    name_width = 2 + max(map(len, drivers))
    groups: list[RenderableType] = []
    for name, features in by_role.items():
        rows = [(f"  {kind}", _joined(words, width - name_width - 4)) for kind, words in features.items()]
        groups += [Text(f"as {name}"), _table(rows)]
    for server in drivers.values():
        for role, together in server.never_together.items():
            groups.append(Text(f"{server.title} as {role}: not {' and '.join(sorted(together))} together"))
    return Group(*groups)


def _joined(words: Iterable[str], width: int) -> str:
    """Joined by commas, broken only there."""
    text = ", ".join(word.replace(" ", NO_BREAK) for word in words)
    return "\n".join(textwrap.wrap(text, max(20, width))).replace(NO_BREAK, " ")


def _traps(width: int) -> RenderableType:
    from dnsrig.traps import all_traps

    return _table((trap.id, trap.title) for trap in all_traps().values())


def _metrics(width: int) -> RenderableType:
    from dnsrig.analysis.metrics import all_metrics

    return _paragraphs(
        (f"{metric.name} ({metric.unit or 'a number'}; {_better(metric.better)})", metric.definition)
        for metric in all_metrics().values()
    )


def _better(better: str) -> str:
    return "neither way is better" if better == "neither" else f"{better} is better"


def _charts(width: int) -> RenderableType:
    from dnsrig.report.charts import all_charts

    return _table((chart.id, chart.title) for chart in all_charts())


def _exports(width: int) -> RenderableType:
    from dnsrig.report.exports import formats

    return _table((name, _headline(module)) for name, module in formats().items())


def _importers(width: int) -> RenderableType:
    from dnsrig.importers import importers

    return _table((name, module.FILES.replace("`", "")) for name, module in importers().items())
