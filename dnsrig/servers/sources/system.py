"""Servers that are installed on this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dnsrig.errors import DnsrigError
from dnsrig.rundir import ServerSource
from dnsrig.servers.driver import Driver
from dnsrig.servers.programs import fingerprint, version

NAME = "system"
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

HOW = "it is what this machine has installed"


def takes(source: str) -> bool:
    return source == NAME


def find(server: Driver, source: str) -> ServerSource:
    found = look(server, source)
    return found.model_copy(update={"version": version(server, _program(server), {})})


def look(server: Driver, source: str) -> ServerSource:
    return ServerSource(kind=server.kind, source=NAME, version="", fingerprint=fingerprint(Path(_program(server))))


def _program(server: Driver) -> str:
    for folder in FOLDERS:
        if (path := Path(folder, server.executable)).exists():
            return str(path)
    raise DnsrigError(
        f"{server.title} ({server.executable}) is not installed on this machine",
        hint=f"use {server.kind}@forky, which dnsrig installs itself, or KIND@/path/to/your/build",
    )


install = find


def installed(server: Driver) -> list[ServerSource]:
    if not server.only_source:
        with contextlib.suppress(DnsrigError):
            return [find(server, NAME)]
    return []


def root(found: ServerSource) -> None:
    return None


def shown(found: ServerSource) -> dict[str, Path]:
    return {}


def program(found: ServerSource, name: str) -> str:
    return name
