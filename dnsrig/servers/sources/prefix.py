"""The user's own builds, by the path of the prefix or of the program."""

from __future__ import annotations

from pathlib import Path

from dnsrig.confinement import FRESH
from dnsrig.errors import UsageError
from dnsrig.rundir import ServerSource
from dnsrig.servers.driver import Driver
from dnsrig.servers.programs import fingerprint, version
from dnsrig.servers.sources import checkout

FOLDERS = ("sbin", "bin", "usr/sbin", "usr/bin", "")

HOW = "it is your own build"


def takes(source: str) -> bool:
    return source.startswith(("/", ".", "~")) and not checkout.takes(source)


def find(server: Driver, source: str) -> ServerSource:
    found = look(server, source)
    return found.model_copy(update={"version": version(server, program(found, server.executable), shown(found))})


def look(server: Driver, source: str) -> ServerSource:
    prefix = Path(source).expanduser().resolve()
    if (path := _program(prefix, server.executable)) is None:
        raise UsageError(
            f"there is no {server.executable} under {prefix}",
            hint=f"give the program, or the prefix of the build: the folder that holds sbin/{server.executable}",
        )
    return ServerSource(kind=server.kind, source=str(prefix), version="", fingerprint=fingerprint(path))


install = find


def installed(server: Driver) -> list[ServerSource]:
    """None: such a build may be anywhere."""
    return []


def root(found: ServerSource) -> None:
    return None


def shown(found: ServerSource) -> dict[str, Path]:
    place = Path(found.source)
    folder = place.parent if place.is_file() else place
    return {str(folder): folder} if any(map(folder.is_relative_to, FRESH)) else {}


def program(found: ServerSource, name: str) -> str:
    return str(_program(Path(found.source), name) or name)


def _program(prefix: Path, name: str) -> Path | None:
    """The path of the program ``name``; if ``prefix`` is a program, it is that one or beside it."""
    places = [prefix.with_name(name)] if prefix.is_file() else [prefix / folder / name for folder in FOLDERS]
    return next((path for path in places if path.is_file()), None)
