"""Where a server's binaries come from: ``KIND@SOURCE`` resolved to exact versions. One file a kind of source.

SOURCE is ``system`` (what is installed), a Debian suite such as ``forky``, the path of the user's own build,
``git:REF`` (a commit of the server's repository, built here), or ``engine`` (what dnsrig brings along itself).
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
from dnsrig.servers.programs import fingerprint as fingerprint
from dnsrig.servers.sources import engine, git, prefix, suite, system


class Source(Protocol):
    """A kind of source: a module of this folder, or of another package (`dnsrig.discovery`)."""

    @property
    def HOW(self) -> str:
        """How `install` comes by a server: the end of a sentence, for who waits."""

    def takes(self, source: str) -> bool:
        """Whether SOURCE names one of this kind; at most one kind takes it."""

    def find(self, server: Driver, source: str) -> ServerSource | None:
        """What is there already, without asking anybody; None for what `install` has to fetch first.

        Raises DnsrigError where there is none and nothing can be fetched.
        """

    def look(self, server: Driver, source: str) -> ServerSource | None:
        """As `find`, but executes nothing of it: the version may be empty."""

    def install(self, server: Driver, source: str) -> ServerSource:
        """Fetch or build the newest version, if it is not there."""

    def installed(self, server: Driver) -> list[ServerSource]:
        """All that `find` would find, as far as they can be listed."""

    def root(self, found: ServerSource) -> Path | None:
        """The root file system that its programs are run in; None: the machine's own."""

    def shown(self, found: ServerSource) -> dict[str, Path]:
        """Folders and files of the machine that its programs see beside that: where they see one -> where it is."""

    def program(self, found: ServerSource, name: str) -> str:
        """What starts the program ``name``: its path, or its name where PATH leads to it."""


_: tuple[Source, ...] = (engine, git, prefix, suite, system)  # for mypy: a module has what the protocol says


_PARTS = ("HOW", "takes", "find", "look", "install", "installed", "root", "shown", "program")


@cache
def all_sources() -> dict[str, Source]:
    return cast(
        dict[str, Source],
        discovery.plugins(__name__, discovery.having(*_PARTS)),
    )


def parse(name: str) -> tuple[Driver, str]:
    """``bind@forky`` -> (driver, "forky"). ``bind`` alone means ``bind@system``."""
    kind, _, source = name.partition("@")
    server = driver(kind)
    source = source or server.only_source or system.NAME
    if server.only_source and source != server.only_source:
        raise UsageError(f"there is no {name}: {kind} is built into dnsrig", hint=f"write {kind}@{server.only_source}")
    if source == engine.NAME and not server.only_source:
        raise UsageError(
            f"there is no {name}: {server.title} is not built into dnsrig", hint=f"write e.g. {kind}@forky"
        )
    return server, source


def find(name: str) -> ServerSource | None:
    """What is there already, without asking any mirror; None for a server that is not installed yet."""
    server, source = parse(name)
    return _kind(source).find(server, source)


def look(name: str) -> ServerSource | None:
    """As `find`, but executes nothing of it: the version may be empty."""
    server, source = parse(name)
    return _kind(source).look(server, source)


def install(name: str) -> ServerSource:
    """Make ``name`` available at its newest version; for a suite this asks the mirror."""
    server, source = parse(name)
    return _kind(source).install(server, source)


def how(name: str) -> str:
    """How `install` comes by a server: the end of a sentence, for who waits."""
    return _kind(parse(name)[1]).HOW


def with_options(name: str, options: str, *, symbols: bool) -> str:
    """``bind@git:v9.18.10`` with more build options. Raises UsageError where there is nothing to build.

    ``symbols`` is for what is built only: it changes no other name.
    """
    server, source = parse(name)
    if git.takes(source):
        return f"{server.kind}@{git.with_options(source, options, symbols=symbols)}"
    if options:
        raise UsageError(
            f"{name} is not built by dnsrig, so it has no build options",
            hint=f"they are for {server.kind}@git:REF; leave build_options out",
        )
    return name


def is_range(name: object) -> bool:
    """Whether it is the name of a range of commits."""
    _, at, source = str(name).partition("@")
    return bool(at) and git.takes(source) and git.is_range(source)


def expand(name: str) -> list[str]:
    """The servers that ``bind@git:FIRST..LAST`` stands for, from the first on; any other name stands for itself."""
    server, source = parse(name)
    if not git.takes(source):
        return [name]
    return [f"{server.kind}@{single}" for single in git.expand(server, source)]


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
    """The root file system that its programs are run in; None: the machine's own."""
    return _kind(found.source).root(found)


def shown(found: ServerSource) -> dict[str, Path]:
    """Folders and files that its programs see beside that root file system: where they see one -> where it is."""
    return _kind(found.source).shown(found)


def executable(found: ServerSource, command: list[str]) -> list[str]:
    """``command`` with the program that its source has."""
    return [_kind(found.source).program(found, command[0]), *command[1:]]


def _kind(source: str) -> Source:
    for kind in all_sources().values():
        if kind.takes(source):
            return kind
    raise UsageError(
        f"{source!r} is not the name of a source of servers",
        hint="e.g. system, a Debian suite such as forky, git:v9.18.10, or a path",
    )
