"""Versions of servers in an experiment: build options, and ranges of commits as axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.experiment import own_servers
from dnsrig.experiment.model import Document, HostDocument, Raw, axis_path
from dnsrig.rundir import Scalar
from dnsrig.servers import sources


def server_of(document: Document, said: HostDocument) -> str | None:
    """``KIND@SOURCE`` with the host's build options; None: the host has no server."""
    if said.server is None:
        return None
    own = own_servers.drivers(document)
    return sources.with_options(said.server, said.build_options, symbols=document.debug == "symbols", own=own)


def expand(document: Document) -> Document:
    """``document`` with each range of commits as values of an axis: of the axis that has the range, or of a new one."""
    matrix = {
        name: _expanded(values) if isinstance(values, list) else _overlays(values)
        for name, values in document.matrix.items()
    }
    own = own_servers.drivers(document)
    varied = {axis_path(name) for name, values in matrix.items() if isinstance(values, list)}
    hosts = dict(document.hosts)
    for name, said in document.hosts.items():
        if said.server is None or ("hosts", name, "server") in varied:
            continue
        values = sources.expand(said.server, own)
        if values != [said.server]:
            matrix[f"hosts.{name}.server"] = [*values]
            hosts[name] = said.model_copy(update={"server": values[0]})
    return document.model_copy(update={"matrix": matrix, "hosts": hosts})


def _expanded(values: list[Scalar]) -> list[Scalar]:
    found: list[Scalar] = []
    for value in values:
        several: list[Scalar] = [*sources.expand(str(value))] if sources.is_range(value) else [value]
        if twice := sorted({str(one) for one in several} & set(map(str, found))):
            raise UsageError(f"{twice[0]} appears twice on an axis", hint="a range includes both its ends")
        found += several
    return found


def _overlays(known: Mapping[str, Raw]) -> dict[str, Raw]:
    """An overlay whose name is a range becomes one overlay for each version."""
    _expanded([*known])  # refuses a value that would appear twice
    several = {name: sources.expand(name) if sources.is_range(name) else [name] for name in known}
    return {one: _renamed(known[name], name, one) for name in known for one in several[name]}


def _renamed(part: Any, old: str, new: str) -> Any:
    if isinstance(part, Mapping):
        return {key: _renamed(value, old, new) for key, value in part.items()}
    return new if part == old else part
