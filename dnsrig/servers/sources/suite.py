"""The packages of a Debian suite, in a root file system that is built once (`dnsrig.servers.debian`)."""

from __future__ import annotations

import re
from pathlib import Path

from dnsrig import paths
from dnsrig.rundir import ServerSource
from dnsrig.servers import debian
from dnsrig.servers.driver import Driver
from dnsrig.servers.sources import engine, system

HOW = "its packages are fetched from this machine's Debian mirror into the cache, once"


def takes(source: str) -> bool:
    return debian.SUITE.fullmatch(source) is not None and source not in (engine.NAME, system.NAME)


def find(server: Driver, source: str) -> ServerSource | None:
    built = _roots(server, source)
    return _from_root(server, built[-1]) if built else None


look = find


def install(server: Driver, source: str) -> ServerSource:
    return _from_root(server, debian.build(source, server.kind, server.packages))


def installed(server: Driver) -> list[ServerSource]:
    if server.only_source:
        return []
    suites = (folder.name for folder in sorted((paths.cache() / "roots").glob("*")))
    return [found for suite in suites if (found := find(server, suite)) is not None]


def root(found: ServerSource) -> Path:
    return debian.folder(found.source) / found.key


def shown(found: ServerSource) -> dict[str, Path]:
    return {}


def program(found: ServerSource, name: str) -> str:
    return name


def _roots(server: Driver, suite: str) -> list[debian.Root]:
    """The root file systems from ``suite`` with all packages that this version of dnsrig needs, the newest last."""
    return [root for root in debian.roots(suite, server.kind) if set(server.packages) <= set(root.packages)]


def _from_root(server: Driver, built: debian.Root) -> ServerSource:
    named = re.compile(server.version_package or re.escape(server.packages[0]))
    version = next(version for name, version in built.packages.items() if named.fullmatch(name))
    shown = re.sub(r"^\d+:", "", version).split("-", 1)[0].split("+", 1)[0]
    return ServerSource(
        kind=server.kind, source=built.suite, version=shown, key=built.path.name, packages=built.packages
    )
