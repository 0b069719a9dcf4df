"""`dnsrig list`: the parts that experiments are made of, and the parts that examine their results."""

from __future__ import annotations

import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Annotated, Any, get_args

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dnsrig.cli import _console, _options
from dnsrig.errors import UsageError

NO_BREAK = "\N{NO-BREAK SPACE}"
ALWAYS = "0.0"
"""The version of a feature that servers had from the start."""


def add(app: typer.Typer) -> None:
    app.command("list")(command)


def command(
    what: Annotated[str | None, typer.Argument(help=f"one of {', '.join(PARTS)}; default: all")] = None,
    as_json: _options.Json = False,
) -> None:
    """List experiments, servers, metrics and other parts.

    Example: dnsrig list experiments

    Lists experiments and the parts they are made of, servers with exact versions, traps, metrics, charts, exports, and
    the tools whose results can be imported.
    """
    if what is not None and what not in PARTS:
        raise UsageError(f"there is nothing called {what!r} to list", hint=f"use one of {', '.join(PARTS)}")
    found = {name: parts() for name, parts in PARTS.items() if what in (None, name)}
    if as_json:
        _console.print_document(found)
        return
    console = _console.out()
    for number, (name, parts) in enumerate(found.items()):
        shown = SHOWN.get(name, _rows)(parts, console.width)
        console.print(*([""] if number else []), Text(name, style="bold"), shown, sep="\n")


Part = dict[str, Any]
"""What a section lists, as plain data: its name first."""


def _rows(parts: list[Part], width: int) -> RenderableType:
    """A line each: all values."""
    return _table(map(str, part.values()) for part in parts)


def _table(rows: Iterable[Iterable[str]]) -> Table:
    """Short columns whole, the last one wrapped."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row))
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def _paragraphs(items: Iterable[tuple[str, str]]) -> Group:
    """A text below each heading."""
    return Group(*(Group(Text(head), Padding(Text(text), (0, 0, 0, 4))) for head, text in items))


def _headline(module: object) -> str:
    """The first paragraph of a docstring, without its full stop."""
    return " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split()).rstrip(".")


def _experiments() -> list[Part]:
    from dnsrig.experiment import model

    return [
        {"name": name, "audience": audience, "procedure": raw["procedure"], "question": raw["question"]}
        for audience, found in model.by_audience().items()
        for name, raw in found.items()
    ]


def _show_experiments(parts: list[Part], width: int) -> RenderableType:
    """The questions of each audience."""
    groups: list[RenderableType] = []
    for audience, found in itertools.groupby(parts, key=lambda part: str(part["audience"])):
        heading = Text(f"{audience[:1].upper()}{audience[1:]}")
        groups += [heading, _table((f"  {part['name']}", part["question"]) for part in found)]
    return Group(*groups)


def _procedures() -> list[Part]:
    from dnsrig.procedures import all_procedures

    return [{"name": name, "description": module.DESCRIPTION} for name, module in all_procedures().items()]


def _datasets() -> list[Part]:
    from dnsrig import datasets

    return _with_parameters(datasets.kinds())


def _streams() -> list[Part]:
    from dnsrig import streams

    return _with_parameters(streams.kinds())


def _with_parameters(kinds: Mapping[str, ModuleType]) -> list[Part]:
    return [
        {"name": name, "description": made.DESCRIPTION, "parameters": dict(made.DEFAULTS)}
        for name, made in kinds.items()
    ]


def _show_parameters(parts: list[Part], width: int) -> RenderableType:
    return _table(
        (part["name"], f"{part['description']}; parameters: {', '.join(part['parameters'])}") for part in parts
    )


def _servers() -> list[Part]:
    """Each kind, with its installed versions and its features: role -> feature -> the version that introduced it."""
    from dnsrig.servers import all_drivers, feature_table, sources

    drivers, features = all_drivers(), dict[str, dict[str, dict[str, str]]]()
    for role, feature, since in feature_table():
        for kind, version in zip(drivers, since):
            if version != "no":
                features.setdefault(kind, {}).setdefault(role, {})[feature] = version
    return [
        {
            "name": kind,
            "title": drivers[kind].title,
            "roles": list(drivers[kind].roles),
            "installed": [{"name": source.name, "version": source.version} for source in found],
            "features": features.get(kind, {}),
        }
        for kind, found in sources.installed().items()
    ]


def _show_servers(parts: list[Part], width: int) -> RenderableType:
    rows = [
        (source["name"], source["version"], ", ".join(part["roles"])) for part in parts for source in part["installed"]
    ]
    missing = [
        (f"{part['title']} is not installed", f"dnsrig servers install {part['name']}@forky")
        for part in parts
        if not part["installed"]
    ]
    absent = [_table(missing)] if missing else []
    return Group(
        _table(rows), *absent, Text("\nfeatures, and the version that introduced each"), _features(parts, width)
    )


def _features(parts: list[Part], width: int) -> RenderableType:
    """The features of each kind, by role."""
    from dnsrig.rundir import Role
    from dnsrig.servers import all_drivers

    by_role = dict[str, list[tuple[str, list[str]]]]()
    for part in parts:
        for role, features in part["features"].items():
            words = [name if since == ALWAYS else f"{name} {since}" for name, since in features.items()]
            by_role.setdefault(role, []).append((part["name"], words))
    name_width = 2 + max(len(part["name"]) for part in parts)
    groups: list[RenderableType] = []
    for role in sorted(by_role, key=list(get_args(Role)).index):
        rows = [(f"  {kind}", _joined(words, width - name_width - 4)) for kind, words in by_role[role]]
        groups += [Text(f"as {role}"), _table(rows)]
    for server in all_drivers().values():
        for role, together in server.never_together.items():
            groups.append(Text(f"{server.title} as {role}: not {' and '.join(sorted(together))} together"))
    return Group(*groups)


def _joined(words: Iterable[str], width: int) -> str:
    """Joined by commas, broken only there."""
    text = ", ".join(word.replace(" ", NO_BREAK) for word in words)
    return "\n".join(textwrap.wrap(text, max(20, width))).replace(NO_BREAK, " ")


def _traps() -> list[Part]:
    from dnsrig.traps import all_traps

    return [{"name": trap.id, "title": trap.title} for trap in all_traps().values()]


def _metrics() -> list[Part]:
    from dnsrig.metrics import all_metrics

    return [
        {"name": metric.name, "unit": metric.unit, "better": metric.better, "definition": metric.definition}
        for metric in all_metrics().values()
    ]


def _show_metrics(parts: list[Part], width: int) -> RenderableType:
    return _paragraphs(
        (f"{part['name']} ({part['unit'] or 'a number'}; {_better(part['better'])})", part["definition"])
        for part in parts
    )


def _better(better: str) -> str:
    return "neither direction is better" if better == "neither" else f"{better} is better"


def _charts() -> list[Part]:
    from dnsrig.report.charts import all_charts

    return [{"name": chart.id, "title": chart.title} for chart in all_charts()]


def _exports() -> list[Part]:
    from dnsrig.report.exports import formats

    return [{"name": name, "description": _headline(module)} for name, module in formats().items()]


def _importers() -> list[Part]:
    from dnsrig.importers import importers

    return [{"name": name, "files": module.FILES.replace("`", "")} for name, module in importers().items()]


PARTS: dict[str, Callable[[], list[Part]]] = {
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
SHOWN: dict[str, Callable[[list[Part], int], RenderableType]] = {
    "experiments": _show_experiments,
    "datasets": _show_parameters,
    "streams": _show_parameters,
    "servers": _show_servers,
    "metrics": _show_metrics,
}
"""Sections that are shown otherwise than a line for each part."""
