"""Options of commands that build servers: another repository, and symbols for profiles."""

from __future__ import annotations

from typing import Annotated

import typer

from dnsrig.errors import UsageError

Option = Annotated[
    list[str] | None,
    typer.Option(
        "--repository",
        metavar="KIND=PLACE",
        help="clone or URL to take the commits of KIND@git:REF from, instead of the public repository; repeatable",
    ),
]
Debug = Annotated[
    str,
    typer.Option(
        metavar="symbols", help="symbols: build servers from repositories with frame pointers and names, for profiles"
    ),
]


def choose(repositories: list[str] | None) -> None:
    from dnsrig.servers import driver
    from dnsrig.servers.builds import repository

    for text in repositories or []:
        kind, equals, place = text.partition("=")
        if not equals or not place:
            raise UsageError(
                f"--repository {text!r} is not KIND=PLACE", hint="write e.g. --repository bind=/srv/mirrors/bind9"
            )
        repository.choose(driver(kind).kind, place)


def settings(debug: str) -> list[str]:
    """The values of an experiment that ``--debug`` changes."""
    if debug not in ("", "symbols"):
        raise UsageError(f"--debug {debug}: the only value is symbols", hint="write --debug symbols, or leave it out")
    return [f"debug={debug}"] if debug else []
