"""What dnsrig brings along itself: parts of the engine in the place of a server. Pinned down by the engine's binary."""

from __future__ import annotations

from pathlib import Path

import dnsrig
from dnsrig import paths
from dnsrig.rundir import ServerSource
from dnsrig.servers.driver import Driver
from dnsrig.servers.programs import fingerprint

NAME = "engine"
SEEN = "/mnt/dnsrig-engine"
"""Where its programs see the engine."""

HOW = "it is a part of dnsrig"


def takes(source: str) -> bool:
    return source == NAME


def find(server: Driver, source: str) -> ServerSource:
    return ServerSource(
        kind=server.kind, source=NAME, version=dnsrig.__version__, fingerprint=fingerprint(paths.engine())
    )


install = look = find


def installed(server: Driver) -> list[ServerSource]:
    return [find(server, NAME)] if server.only_source == NAME else []


def root(found: ServerSource) -> None:
    return None


def shown(found: ServerSource) -> dict[str, Path]:
    return {SEEN: paths.engine()}


def program(found: ServerSource, name: str) -> str:
    return SEEN
