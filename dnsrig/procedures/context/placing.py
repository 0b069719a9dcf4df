"""The place of a server in a trial: its folders, its zones, its routes to the primaries, and the paths for its
programs."""

from __future__ import annotations

import itertools
import shutil
from ipaddress import ip_address
from pathlib import Path

from dnsrig import datasets, paths, streams
from dnsrig.confinement import MACHINE, BindMount, Confinement
from dnsrig.errors import DnsrigError
from dnsrig.lab import addresses
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.procedures.parts import client_classes
from dnsrig.rundir import Address, HostSpec, TrialSpec
from dnsrig.servers import driver_of, sources
from dnsrig.servers.database import Database
from dnsrig.servers.placement import Endpoint, Placement, Route, Zone
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE


def place(workspace: Workspace, name: str) -> Placement:
    """Make the folders of the server of host ``name``, and the files that it needs there."""
    spec, keys, dataset = workspace.spec, workspace.keys, workspace.dataset
    host = spec.hosts[name]
    if host.server is None or host.role is None:
        raise DnsrigError(f"host {name} has no server")
    folder, stored = workspace.directory / "servers" / name, workspace.state / name
    for path in (folder.resolve(), dataset):
        paths.check_for_servers(path)
    folder.mkdir(parents=True)
    stored.mkdir(parents=True)
    over_tls = _listens_for_tls(spec, name)
    over_https = client_classes.over_https(spec) and host.under_test
    over_quic = client_classes.over_quic(spec) and host.under_test
    for_clients = over_tls or over_https or over_quic
    if spec.transfer.tls or for_clients:
        keys.write(stored, private=host.role == "primary" or for_clients)
    if _changes(spec, host.role):
        dataset = shutil.copytree(dataset, stored.resolve() / "dataset")
    catalog = Zone(*datasets.catalog_of(dataset)) if spec.transfer.provisioning == "catalog" else None
    return Placement(
        host=host,
        root=sources.root(host.server) or MACHINE,
        zones=read_zones(dataset / "zones.list"),
        routes=[] if host.role == "primary" or host.database else _routes(spec, host),
        secondaries=secondaries(spec) if host.role == "primary" else [],
        transfer=spec.transfer,
        keys=keys,
        catalog=catalog,
        directory=folder,
        seen_directory="/mnt/server",
        state=stored,
        seen_state="/mnt/state",
        dataset=dataset,
        seen_dataset="/mnt/dataset",
        shown=sources.shown(host.server),
        other_address=next(iter(addresses.both(host.address)[1:]), None),
        over_tls=over_tls,
        over_https=over_https,
        over_quic=over_quic,
        database=database_of(spec, host),
        stream=streams.file(spec.stream.key) if spec.stream else None,
        backend_proxied=host.role == "frontend" and spec.hosts[_behind(spec)].proxy_protocol,
        from_hints=host.role == "resolver" and _hints_laid_out(workspace, folder),
    )


def _behind(spec: TrialSpec) -> str:
    """The host of the server behind a frontend."""
    return str(spec.options["behind"])


def _hints_laid_out(workspace: Workspace, folder: Path) -> bool:
    """Whether there is a world to resolve from. If so, copy its hints and its trust anchor to ``folder``."""
    if (world := workspace.spec.world) is None:
        return False
    for name in (HINTS_FILE, ANCHOR_FILE):
        if (file := workspace.directory / "servers" / world / name).exists():
            shutil.copyfile(file, folder / name)
    return True


def _listens_for_tls(spec: TrialSpec, name: str) -> bool:
    """Whether a server listens for TLS: for queries, or as a database for a server or a replica at another site.

    A replica of a database at another site listens, too: Redis has no TLS without its own certificate.
    """
    host = spec.hosts[name]
    if host.role == "database":
        used_from_far = any(other.database == name and other.database_far for other in spec.hosts.values())
        return spec.transfer.tls and (used_from_far or host.database_far)
    return client_classes.over_tls(spec) and host.under_test


def database_of(spec: TrialSpec, host: HostSpec) -> Endpoint | None:
    """Endpoint of the database of ``host``. It uses TLS if transfers do and the database is at another site."""
    if host.database is None:
        return None
    near = spec.hosts[host.database]
    assert near.server is not None
    kind = driver_of(near.server)
    assert isinstance(kind, Database)
    tls = spec.transfer.tls and host.database_far
    return Endpoint(ip_address(near.address), kind.tls_port if tls else kind.port, tls)


def secondaries(spec: TrialSpec) -> list[Address]:
    """Addresses that a primary notifies: hosts with a secondary, and addresses at which an instrument plays one."""
    hosts = spec.hosts.values()
    real = [ip_address(host.address) for host in hosts if host.role == "secondary"]
    return [*real, *(ip_address(text) for host in hosts if host.notified for text in host.source_addresses)]


def changes_itself(spec: TrialSpec) -> bool:
    """Whether the primary changes its zones by itself, without updates."""
    server = spec.hosts["primary"].server
    return server is not None and driver_of(server).changes_itself


def confinement(placement: Placement) -> Confinement:
    """The confinement of a server's programs."""
    kind = driver_of(placement.source)
    shown = {**placement.shown, **({placement.seen_stream: placement.stream} if placement.stream else {})}
    binds = [
        BindMount(placement.directory.resolve(), placement.seen_directory, read_only=not kind.writes_kept),
        BindMount(placement.state.resolve(), placement.seen_state),
        BindMount(placement.dataset, placement.seen_dataset, read_only=not placement.may_change_zones),
        *(BindMount(place, seen, read_only=True) for seen, place in shown.items()),
    ]
    return Confinement(placement.root, binds, kind.capabilities)


def read_zones(path: Path) -> list[Zone]:
    """The zones in ``zones.list``: one line a zone, its name and its file, separated by a tab."""
    with path.open() as lines:
        return [Zone(*line.rstrip("\n").split("\t")) for line in lines]


def _changes(spec: TrialSpec, role: str) -> bool:
    """Whether the server gets its own copy of the dataset, because the zones will change: some servers write updated
    zones back to their files."""
    return (spec.next_dataset is not None or spec.transfer.updates) and role == "primary"


def _routes(spec: TrialSpec, host: HostSpec) -> list[Route]:
    """Every primary, asked from every address of the host in turn; for a frontend, the server behind it."""
    names = [_behind(spec)] if host.role == "frontend" else spec.primaries
    primaries = [ip_address(spec.hosts[name].address) for name in names]
    own = [ip_address(address) for address in (host.address, *host.source_addresses)]
    sources: list[Address | None] = [*own] if host.source_addresses else [None]
    pairs = itertools.product(sources, primaries)
    return [Route(number, primary, source) for number, (source, primary) in enumerate(pairs, start=1)]
