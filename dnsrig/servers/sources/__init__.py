"""Where a server's binaries come from: ``KIND@SOURCE`` resolved to exact versions. One file a kind of source.

SOURCE is ``system`` (what is installed), a Debian suite such as ``forky``, the path of the user's own build, or
``engine`` (what dnsrig brings along itself).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Protocol, cast

from dnsrig import discovery
from dnsrig.errors import UsageError
from dnsrig.rundir import ServerSource
from dnsrig.servers import all_drivers, driver
from dnsrig.servers.driver import Driver
from dnsrig.servers.sources import engine, prefix, suite, system
from dnsrig.servers.sources._program import fingerprint as fingerprint


class Source(Protocol):
    """A kind of source: a module of this folder, or of another package (`dnsrig.discovery`)."""

    def takes(self, source: str) -> bool:
        """Whether SOURCE names one of this kind; at most one kind takes it."""

    def find(self, server: Driver, source: str) -> ServerSource | None:
        """What is there already, without asking anybody; None for what `install` has to fetch first.

        Raises DnsrigError where there is none and nothing can be fetched.
        """

    def install(self, server: Driver, source: str) -> ServerSource:
        """Fetch or build the newest version, if it is not there."""

    def installed(self, server: Driver) -> list[ServerSource]:
        """All that `find` would find, as far as they can be listed."""

    def root(self, found: ServerSource) -> Path | None:
        """The root file system that its programs are run in; None: that of the machine."""

    def program(self, found: ServerSource, name: str) -> str:
        """What starts the program ``name``: its path, or its name where PATH leads to it."""


_: tuple[Source, ...] = (engine, prefix, suite, system)  # for mypy: a module has what the protocol says


@cache
def all_sources() -> dict[str, Source]:
    return cast(
        dict[str, Source],
        discovery.plugins(__name__, discovery.having("takes", "find", "install", "installed", "root", "program")),
    )


def parse(name: str) -> tuple[Driver, str]:
    """``bind@forky`` -> (driver, "forky"). ``bind`` alone means ``bind@system``."""
    kind, _, source = name.partition("@")
    server = driver(kind)
    source = source or server.only_source or system.NAME
    if server.only_source and source != server.only_source:
        raise UsageError(f"there is no {name}: {kind} is a part of dnsrig", hint=f"write {kind}@{server.only_source}")
    if source == engine.NAME and not server.only_source:
        raise UsageError(f"there is no {name}: {server.title} is no part of dnsrig", hint=f"write e.g. {kind}@forky")
    return server, source


def find(name: str) -> ServerSource | None:
    """What is there already, without asking any mirror; None for a server that is not installed yet."""
    server, source = parse(name)
    return _kind(source).find(server, source)


def install(name: str) -> ServerSource:
    """Make ``name`` available at its newest version; for a suite this asks the mirror."""
    server, source = parse(name)
    return _kind(source).install(server, source)


def installed() -> dict[str, list[ServerSource]]:
    """Per kind of server, every source that is usable without installing anything."""
    return {
        kind: [found for source in all_sources().values() for found in source.installed(server)]
        for kind, server in all_drivers().items()
    }


def unchanged(found: ServerSource) -> bool:
    """Whether it is still there as it was found."""
    kept = root(found)
    return kept.is_dir() if kept is not None else find(found.name) == found


def root(found: ServerSource) -> Path | None:
    """The root file system that its programs are run in; None: that of the machine."""
    return _kind(found.source).root(found)


def executable(found: ServerSource, command: list[str]) -> list[str]:
    """``command`` with the program that its source has."""
    return [_kind(found.source).program(found, command[0]), *command[1:]]


def _kind(source: str) -> Source:
    for kind in all_sources().values():
        if kind.takes(source):
            return kind
    raise UsageError(
        f"{source!r} is not the name of a source of servers",
        hint="e.g. system, a Debian suite such as forky, or a path",
    )
