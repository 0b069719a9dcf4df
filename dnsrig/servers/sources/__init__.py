"""Sources of servers: ``KIND@SOURCE`` resolved to exact versions. One file a kind of source.

SOURCE is ``system`` (installed on this machine), a Debian suite such as ``forky``, the path of the user's own build,
``git:REF`` (a commit of the server's repository, built here), the path of a checkout of that repository (built here
with its changes), ``engine`` (parts of dnsrig itself), or the address of a server that runs already.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Protocol, cast

from dnsrig import discovery
from dnsrig.errors import UsageError
from dnsrig.rundir import ServerSource
from dnsrig.servers import all_drivers, described, driver, driver_of, running
from dnsrig.servers.driver import Driver
from dnsrig.servers.programs import fingerprint as fingerprint
from dnsrig.servers.sources import address, checkout, engine, git, prefix, suite, system


class Source(Protocol):
    """A kind of source: a module of this folder, or of another package (`dnsrig.discovery`)."""

    @property
    def HOW(self) -> str:
        """How `install` gets a server: the end of a sentence that a waiting user reads."""

    def takes(self, source: str) -> bool:
        """Whether ``source`` is of this kind; at most one kind takes it."""

    def find(self, server: Driver, source: str) -> ServerSource | None:
        """The server as it is on this machine, without network; None if `install` has to fetch it first.

        Raises DnsrigError if it is missing and cannot be fetched.
        """

    def look(self, server: Driver, source: str) -> ServerSource | None:
        """Find a server without executing it: the version may be empty."""

    def install(self, server: Driver, source: str) -> ServerSource:
        """Fetch or build the newest version, if it is missing."""

    def installed(self, server: Driver) -> list[ServerSource]:
        """All servers that `find` would find, as far as they can be listed."""

    def root(self, found: ServerSource) -> Path | None:
        """The root file system in which its programs run; None: the root of the machine."""

    def shown(self, found: ServerSource) -> dict[str, Path]:
        """Other folders and files that its programs see: path as they see it -> path on the machine."""

    def program(self, found: ServerSource, name: str) -> str:
        """The path of the program ``name``, or its name if PATH leads to it."""


_: tuple[Source, ...] = (address, checkout, engine, git, prefix, suite, system)  # for mypy: what the protocol says


_PARTS = ("HOW", "takes", "find", "look", "install", "installed", "root", "shown", "program")


@cache
def all_sources() -> dict[str, Source]:
    return cast(
        dict[str, Source],
        discovery.plugins(__name__, discovery.having(*_PARTS)),
    )


Own = Mapping[str, Driver]
"""Drivers of the servers that an experiment describes, by name."""


def parse(name: str, own: Own | None = None) -> tuple[Driver, str]:
    """``bind@forky`` -> (driver, "forky"). ``bind`` alone means ``bind@system``.

    The name of a server of ``own`` alone means the program of its command: a path, or what the machine has installed.
    """
    kind, _, source = name.partition("@")
    if own and kind in own:
        return own[kind], _source_of(own[kind], source)
    server = driver(kind)
    if server is running.RUNNING:
        running.parse(source)
        return server, source
    source = source or server.only_source or system.NAME
    if address.takes(source):
        raise UsageError(
            f"{name}: a server at an address runs already, and dnsrig does not know its kind",
            hint=f"write {running.RUNNING.kind}@{source}",
        )
    if server.only_source and source != server.only_source:
        raise UsageError(f"there is no {name}: {kind} is built into dnsrig", hint=f"write {kind}@{server.only_source}")
    if source == engine.NAME and not server.only_source:
        raise UsageError(
            f"there is no {name}: {server.title} is not built into dnsrig", hint=f"write e.g. {kind}@forky"
        )
    return server, source


def _source_of(server: Driver, source: str) -> str:
    """The source of a server that an experiment describes."""
    assert isinstance(server, described.Described)
    if not source:
        return server.described.program or system.NAME
    if suite.takes(source) and not server.packages:
        raise UsageError(
            f"{server.kind}@{source}: servers.{server.kind} names no package of Debian",
            hint=f'set servers.{server.kind}.packages, e.g. ["hickory-dns"], or write {server.kind} alone',
        )
    if address.takes(source) or engine.takes(source) or git.takes(source):
        raise UsageError(
            f"{server.kind}@{source}: dnsrig does not build a server that an experiment describes",
            hint=f"write {server.kind} alone, {server.kind}@SUITE or {server.kind}@/path/to/your/build",
        )
    return source


def find(name: str, own: Own | None = None) -> ServerSource | None:
    """The server as it is on this machine, without network; None if it is not installed yet."""
    server, source = parse(name, own)
    found = _kind(source).find(server, source)
    return None if found is None else _with_description(found, server)


def look(name: str, own: Own | None = None) -> ServerSource | None:
    """Find a server without executing it: the version may be empty."""
    server, source = parse(name, own)
    return _kind(source).look(server, source)


def install(name: str, own: Own | None = None) -> ServerSource:
    """Make ``name`` available at its newest version; for a suite this asks the mirror."""
    server, source = parse(name, own)
    return _with_description(_kind(source).install(server, source), server)


def _with_description(found: ServerSource, server: Driver) -> ServerSource:
    if isinstance(server, described.Described):
        return found.model_copy(update={"described": server.described})
    return found


def how(name: str, own: Own | None = None) -> str:
    """How `install` gets a server: the end of a sentence that a waiting user reads."""
    return _kind(parse(name, own)[1]).HOW


def with_options(name: str, options: str, *, symbols: bool, own: Own | None = None) -> str:
    """``bind@git:v9.18.10`` with more build options. Raises UsageError if dnsrig does not build this server.

    ``symbols`` changes only names of servers that are built.
    """
    server, source = parse(name, own)
    if git.takes(source):
        return f"{server.kind}@{git.with_options(source, options, symbols=symbols)}"
    if checkout.takes(source):
        return f"{server.kind}@{checkout.with_options(source, options, symbols=symbols)}"
    if options:
        raise UsageError(
            f"{name} is not built by dnsrig, so it has no build options",
            hint=f"they are for {server.kind}@git:REF; leave build_options out",
        )
    return name


def is_range(name: object) -> bool:
    """Whether ``name`` is a range of commits."""
    _, at, source = str(name).partition("@")
    return bool(at) and git.takes(source) and git.is_range(source)


def expand(name: str, own: Own | None = None) -> list[str]:
    """The single servers of ``bind@git:FIRST..LAST``, from the first on; a list of ``name`` if it is not a range."""
    server, source = parse(name, own)
    if not git.takes(source):
        return [name]
    return [f"{server.kind}@{single}" for single in git.expand(server, source)]


def installed() -> dict[str, list[ServerSource]]:
    """For each kind of server, every source that is usable without installing anything."""
    return {
        kind: [found for source in all_sources().values() for found in source.installed(server)]
        for kind, server in all_drivers().items()
    }


def unchanged(found: ServerSource) -> bool:
    """Whether the server is still the same as when it was found. Of a server that runs already, nobody knows."""
    if found.kind == running.RUNNING.kind:
        return True
    kept = root(found)
    if kept is not None:
        return kept.is_dir()
    if found.described is None:
        return find(found.name) == found
    files, hashes = found.described.files, found.described.hashes
    same = all(Path(file).is_file() and fingerprint(Path(file)) == hashes[word] for word, file in files.items())
    return same and find(found.name, {found.kind: driver_of(found)}) == found


def root(found: ServerSource) -> Path | None:
    """The root file system in which its programs run; None: the root of the machine."""
    return _kind(found.source).root(found)


def shown(found: ServerSource) -> dict[str, Path]:
    """Folders and files that its programs see beside that root file system: path as they see it -> path on the
    machine."""
    files = described.seen_files(found.described) if found.described else {}
    beside = {seen: Path(found.described.files[word]) for word, seen in files.items()} if found.described else {}
    return {**_kind(found.source).shown(found), **beside}


def executable(found: ServerSource, command: list[str]) -> list[str]:
    """``command`` with the path of its program in its source."""
    return [_kind(found.source).program(found, command[0]), *command[1:]]


def _kind(source: str) -> Source:
    for kind in all_sources().values():
        if kind.takes(source):
            return kind
    raise UsageError(
        f"{source!r} is not the name of a source of servers",
        hint="e.g. system, a Debian suite such as forky, git:v9.18.10, or a path",
    )
