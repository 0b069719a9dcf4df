"""`dnsrig servers`: install servers from Debian suites, or build them from their repositories."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from dnsrig.cli import _console, _repository


def add(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Install servers beside each other, out of the system's way.")
    group.command("install")(install)
    app.add_typer(group, name="servers")


def install(
    names: Annotated[
        list[str], typer.Argument(metavar="KIND@SOURCE…", help="e.g. bind@forky knot@trixie bind@git:v9.18.10")
    ],
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="leave what is installed as it is, without asking the mirror")
    ] = False,
    repositories: _repository.Option = None,
    debug: _repository.Debug = "",
    build_options: Annotated[
        str, typer.Option(metavar="WORDS", help="build options of KIND@git:REF, as in an experiment's build_options")
    ] = "",
) -> None:
    """Resolve KIND@SOURCE to the newest versions of its suite and unpack them into the cache, or build a commit.

    A version that is there already stays; runs made with it can still be resumed. FIRST..LAST builds a range.

    Examples: dnsrig servers install bind@forky; dnsrig servers install bind@git:v9.18.10 --debug symbols;
    dnsrig servers install nsd@git:NSD_4_8_0_REL..NSD_4_12_0_REL --repository nsd=/srv/mirrors/nsd
    """
    from dnsrig.servers import sources

    console = _console.err()
    _repository.choose(repositories)
    for name in names:
        sources.parse(name)
    wanted = [single for name in names for single in sources.expand(name)]
    wanted = [sources.with_options(name, build_options, symbols=bool(_repository.settings(debug))) for name in wanted]
    for number, name in enumerate(wanted, start=1):
        with console.status(Text(f"installing {name} ({number} of {len(wanted)})")):
            found = (sources.find(name) if if_missing else None) or sources.install(name)
        place = next(iter(sources.shown(found).values()), None) or sources.root(found) or found.prefix or "system"
        print(f"{found.name}\t{found.version}\t{place}")
