"""Servers that run already, by their address (`dnsrig.servers.running`)."""

from __future__ import annotations

import re
from pathlib import Path

from dnsrig.rundir import ServerSource
from dnsrig.servers import running
from dnsrig.servers.driver import Driver

HOW = "it runs already"
BEGINNING = re.compile(r"[0-9][0-9.]*(?:[:,]|$)|\[?[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")
"""What no name of a suite, path or commit begins with: the first part of an address."""


def takes(source: str) -> bool:
    return BEGINNING.match(source) is not None


def find(server: Driver, source: str) -> ServerSource:
    """The server without its version: nothing is sent. `running.identify` asks for it, if the user may."""
    running.parse(source)
    return ServerSource(kind=server.kind, source=source, version=running.UNKNOWN)


look = install = find


def installed(server: Driver) -> list[ServerSource]:
    return []


def root(found: ServerSource) -> None:
    return None


def shown(found: ServerSource) -> dict[str, Path]:
    return {}


def program(found: ServerSource, name: str) -> str:
    return name
