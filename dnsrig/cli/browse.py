"""`dnsrig browse`: runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dnsrig.cli._app import complain
from dnsrig.errors import DnsrigError, UsageError


def add(app: typer.Typer) -> None:
    app.command("browse")(command)


def command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="folder with runs, at any depth, or a single run")
    ] = Path("runs"),
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="TCP port; 0: any free port")] = 8053,
    listen: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="address to listen on; the default is reachable from this machine only"),
    ] = "127.0.0.1",
) -> None:
    """Show runs in a web browser.

    Examples:

        dnsrig browse
        dnsrig browse history/startup --port 0

    Shows all runs in DIR, one run with its charts and trials, several runs side by side, and a run that is being
    executed. Prints the address, which contains a token, and runs until it is interrupted. It only reads runs, except
    that it writes notes and tags to notes.json in a run. It needs the packages of the extra `web`.
    """
    if not directory.is_dir():
        raise UsageError(f"there is no folder {directory}", hint="`dnsrig run tour` makes the folder runs, with a run")
    try:
        from dnsrig.browse.serve import serve
    except ModuleNotFoundError as error:
        raise DnsrigError(
            f"a Python package is missing: {error.name}",
            hint="docs/how-to/install.md shows how to install the extra web",
        ) from error
    from dnsrig.browse.security import is_loopback

    if not is_loopback(listen):
        complain(
            f"anybody who reaches {listen} and knows the token can read these runs, over HTTP without TLS",
            "better forward the port: ssh -L 8053:127.0.0.1:8053 MACHINE",
        )
    serve(directory, listen, port, lambda url: print(url, flush=True))
