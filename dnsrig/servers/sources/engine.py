"""Parts of the engine as servers. Their version is the version of dnsrig, and their fingerprint is from the engine's
binary."""

from __future__ import annotations

from pathlib import Path

import dnsrig
from dnsrig import paths
from dnsrig.rundir import ServerSource
from dnsrig.servers.driver import Driver
from dnsrig.servers.programs import fingerprint

NAME = "engine"
SEEN = "/mnt/dnsrig-engine"
"""Path of the engine, as its programs see it."""

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
