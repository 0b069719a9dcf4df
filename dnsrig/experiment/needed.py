"""The files and folders that a trial reads beside its spec."""

from __future__ import annotations

from pathlib import Path

from dnsrig import datasets, query_files, streams
from dnsrig.rundir import ServerSource, TrialSpec
from dnsrig.servers import sources


def data(spec: TrialSpec) -> list[Path]:
    """Folders of the datasets, of the replayed stream and of the servers."""
    servers = [host.server for host in spec.hosts.values() if host.server is not None]
    return [*zones(spec), *(path for server in servers for path in _of_server(server))]


def elsewhere(spec: TrialSpec, machine: str) -> list[Path]:
    """Folders that programs on hosts of another machine read."""
    servers = [host.server for host in spec.hosts.values() if host.machine == machine and host.server is not None]
    return [*zones(spec), *(path for server in servers for path in _of_server(server))]


def zones(spec: TrialSpec) -> list[Path]:
    """Folders of the datasets, of the stream and of the queries, which instruments read, too."""
    found = [datasets.folder(data.key) for data in spec.versions]
    found += [query_files.folder(spec.queries.key)] if spec.queries is not None else []
    return [*found, *([streams.folder(spec.stream.key)] if spec.stream is not None else [])]


def _of_server(server: ServerSource) -> list[Path]:
    roots = [Path(place) for place in (sources.root(server), server.prefix) if place is not None]
    return [*roots, *sources.shown(server).values()]
