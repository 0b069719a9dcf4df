"""`dnsrig servers`: install servers from Debian suites."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from dnsrig.cli import _console


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True, help="Install servers from Debian suites, beside each other, out of the system's way."
    )
    group.command("install")(install)
    app.add_typer(group, name="servers")


def install(
    names: Annotated[list[str], typer.Argument(metavar="KIND@SOURCE…", help="e.g. bind@forky knot@trixie")],
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="leave what is installed as it is, without asking the mirror")
    ] = False,
) -> None:
    """Resolve KIND@SOURCE to the newest versions of its suite and unpack them into the cache.

    A version that is there already stays; runs made with it can still be resumed.
    """
    from dnsrig.servers import sources

    console = _console.err()
    for name in names:
        sources.parse(name)
    for name in names:
        with console.status(Text(f"installing {name}")):
            found = (sources.find(name) if if_missing else None) or sources.install(name)
        print(f"{found.name}\t{found.version}\t{sources.root(found) or found.prefix or 'system'}")
