"""The order of a server's versions, as chosen by an option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dnsrig.errors import UsageError

if TYPE_CHECKING:
    from dnsrig.comparison.history import Order
    from dnsrig.comparison.versions import Version

ORDERS = ("auto", "number", "given")


def check(name: str) -> None:
    if name not in ORDERS:
        raise UsageError(f"there is no order {name!r}", hint=f"use one of {', '.join(ORDERS)}")


def order(name: str, named: Sequence[str] = ()) -> Order:
    """The function that sorts the versions of one kind of server. ``named``: the versions for the order ``given``."""
    from dnsrig.comparison import versions
    from dnsrig.servers import sources

    if name == "given":
        known = [versions.of(server).id for text in named if (server := sources.look(text)) is not None]
        places = {identity: place for place, identity in enumerate(known)}
        return lambda found: sorted(found, key=lambda version: places.get(version.id, len(places)))
    return _by_commit_or_number if name == "auto" else versions.by_number


def _by_commit_or_number(found: Sequence[Version]) -> list[Version]:
    from dnsrig.comparison import versions
    from dnsrig.servers import driver
    from dnsrig.servers.sources import git

    commits = [version.commit for version in found]
    server = driver(found[0].server.kind) if found else None
    if server is None or server.recipe is None or not all(commits):
        return versions.by_number(found)
    origin = git.repository_of(server)
    if not origin.is_there:
        return versions.by_number(found)
    return versions.by_commit(found, origin.places(commits))
