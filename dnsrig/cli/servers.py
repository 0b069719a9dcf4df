"""`dnsrig servers`: install servers from Debian suites, build them from their repositories, and print the templates of
their configurations."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from dnsrig.cli import _console, _options, _repository


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        no_args_is_help=True, help="Install or build DNS servers, outside the system; print their templates."
    )
    group.command("install")(install)
    group.command("template")(template)
    app.add_typer(group, name="servers")


def install(
    names: Annotated[
        list[str], typer.Argument(metavar="KIND@SOURCE…", help="e.g. bind@forky knot@trixie bind@git:v9.18.10")
    ],
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="keep an installed version, and do not ask the mirror for a newer one")
    ] = False,
    repositories: _repository.Option = None,
    debug: _repository.Debug = "",
    build_options: Annotated[
        str, typer.Option(metavar="WORDS", help="build options of KIND@git:REF, like build_options of an experiment")
    ] = "",
    quiet: _options.Quiet = False,
) -> None:
    """Install servers from Debian, or build commits.

    Examples:

        dnsrig servers install bind@forky
        dnsrig servers install bind@git:v9.18.10 --debug symbols
        dnsrig servers install nsd@git:NSD_4_8_0_REL..NSD_4_12_0_REL \\
            --repository nsd=/srv/mirrors/nsd

    Unpacks the newest version in a Debian suite into the cache, or builds a commit. FIRST..LAST builds a range of
    commits. Versions that are already installed are kept, so that their runs can be resumed.
    """
    from dnsrig.servers import sources

    console = _console.progress(quiet)
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


def template(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="kind of server, e.g. bind")],
    role: Annotated[str, typer.Argument(metavar="ROLE", help="primary, secondary or resolver")],
) -> None:
    """Print the template of a server's configuration.

    Examples:

        dnsrig servers template bind secondary > named.conf.j2
        dnsrig run startup --set hosts.secondary.config=named.conf.j2

    The template is what dnsrig itself uses. `hosts.NAME.config` of an experiment takes a changed copy.
    """
    from dnsrig import servers
    from dnsrig.errors import UsageError

    server = servers.driver(kind)
    text = next((server.template(known) for known in server.templates if known == role), None)
    if text is None:
        able = ", ".join(server.templates)
        hint = f"it has one as {able}" if able else "its whole configuration is on the command line"
        raise UsageError(f"{server.title} has no template for the role {role!r}", hint=hint)
    print(text, end="")
