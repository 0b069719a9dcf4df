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
        Path, typer.Argument(metavar="DIR", help="folder with runs, at whatever depth, or a single run")
    ] = Path("runs"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0 takes a free one")] = 8053,
    host: Annotated[
        str, typer.Option(help="address to listen on; by default only this machine can reach it")
    ] = "127.0.0.1",
) -> None:
    """Show the runs in DIR in a browser: all of them, one with its charts and trials, several side by side, and one
    that is being executed.

    Prints the address, with a token in it, and goes on until it is interrupted. It reads runs; all that it writes are
    notes and tags, to notes.json in a run. It needs the packages of the extra `web`.

    Examples: dnsrig browse; dnsrig browse history/startup --port 0
    """
    if not directory.is_dir():
        raise UsageError(f"there is no folder {directory}", hint="`dnsrig run tour` makes one with a run in it: runs")
    try:
        from dnsrig.browse.serve import serve
    except ModuleNotFoundError as error:
        raise DnsrigError(
            f"a Python package is missing: {error.name}", hint="install dnsrig with its extra: dnsrig[web]"
        ) from error
    from dnsrig.browse.security import is_loopback

    if not is_loopback(host):
        complain(
            f"whoever reaches {host} and knows the token can read these runs, over HTTP without TLS",
            "better forward the port: ssh -L 8053:127.0.0.1:8053 MACHINE",
        )
    serve(directory, host, port, lambda url: print(url, flush=True))
