"""What commands that build servers have in common: another repository, and names for profiles."""

from __future__ import annotations

from typing import Annotated

import typer

from dnsrig.errors import UsageError

Option = Annotated[
    list[str] | None,
    typer.Option(
        "--repository",
        metavar="KIND=PLACE",
        help="take the commits of KIND@git:REF from this clone or URL, not from the public one; repeatable",
    ),
]
Debug = Annotated[
    str,
    typer.Option(
        metavar="symbols", help="symbols: what is built from a repository has frame pointers and names, for profiles"
    ),
]


def choose(repositories: list[str] | None) -> None:
    from dnsrig.servers import driver
    from dnsrig.servers.builds import repository

    for text in repositories or []:
        kind, equals, place = text.partition("=")
        if not equals or not place:
            raise UsageError(
                f"--repository {text!r} is not KIND=PLACE", hint="e.g. --repository bind=/srv/mirrors/bind9"
            )
        repository.choose(driver(kind).kind, place)


def settings(debug: str) -> list[str]:
    """What ``--debug`` means for an experiment."""
    if debug not in ("", "symbols"):
        raise UsageError(f"--debug {debug}: there is only --debug symbols", hint="leave it out, or write symbols")
    return [f"debug={debug}"] if debug else []
