"""The trials of a run: variants, the spec of each trial, and the order of trials."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from dnsrig import datasets, query_files, streams
from dnsrig.errors import UsageError
from dnsrig.experiment import builds, hosts, own_servers, path, running_servers
from dnsrig.experiment.model import Document, Point
from dnsrig.machines.ssh_machine import HostingMachine
from dnsrig.metrics import all_metrics
from dnsrig.procedures import options_of, procedure
from dnsrig.procedures.parts.client_classes import over_https, over_quic, over_tls
from dnsrig.rundir import (
    DatasetSpec,
    HostSpec,
    QueriesSpec,
    Role,
    Scalar,
    ServerSource,
    StreamSpec,
    TrialKey,
    TrialSpec,
    Variant,
)
from dnsrig.servers import driver_of, resolving, sources
from dnsrig.servers.described import Described
from dnsrig.servers.driver import Driver, wanted_features

MAX_TRIALS = 1000
NOT_MEASURED = {"repeats", "title", "question", "audience", "sources", "baseline", "servers", "main_metric"}
"""Neither words, nor repeats, nor the variant that others are compared with change what is measured. Servers that the
experiment describes count with the contents of their files."""


def variant(point: Point, made: Mapping[str, HostSpec] = MappingProxyType({})) -> Variant:
    """Identity of a point: readable, safe as the name of a folder, and unique. ``made``: its hosts."""
    text = "-".join(f"{label}-{value}" for label, value in point.parameters.items()) or "only"
    slug = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:60] or "variant"
    measured = point.document.model_dump(exclude=NOT_MEASURED)
    if measured["queries"] is None:
        del measured["queries"]  # as if there were no such key: other variants keep the names that they have
    if own := own_servers.described_in(point.document):
        measured["servers"] = {name: one.model_dump(exclude={"program", "files"}) for name, one in own.items()}
    places = datasets.paths_of(measured["dataset"].get("kind"))
    if any(measured["dataset"].get(name) for name in places):
        # The same zones in another folder are the same variant. Axes that lead to others are in the parameters.
        measured["dataset"] = {n: v for n, v in measured["dataset"].items() if n not in places}
        measured["parameters"] = point.parameters
    # Files of the user count by what they contain. To sample a machine changes nothing of what is measured.
    for name, host in measured["hosts"].items():
        host.pop("watch")
        if not host["proxy_protocol"]:
            del host["proxy_protocol"]  # as if there were no such key
        for key in hosts.OWN_FILES:
            host.pop(key)
            if name in made and (file := getattr(made[name], key)) is not None:
                host[key] = file.sha256
    key = json.dumps(measured, sort_keys=True)
    return Variant(id=f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:6]}", parameters=point.parameters)


def spec(
    run: str,
    experiment: str,
    point: Point,
    servers: Mapping[str, ServerSource],
    versions: list[DatasetSpec],
    available: list[int],
    stream: StreamSpec | None = None,
    queries: QueriesSpec | None = None,
    elsewhere: Mapping[str, HostingMachine] | None = None,
) -> TrialSpec:
    """Everything that `dnsrig trial` needs for ``point``.

    ``versions``: the dataset, and its next version if the procedure needs one; ``elsewhere``: other machines for hosts;
    None: not known yet. Raises UsageError on a trial that is impossible.
    """
    document = point.document
    kind = procedure(document.procedure)
    _check_stream(document, kind)
    _check_queries(document, kind)
    options = options_of(kind, document.options)
    cpus = None if elsewhere is None else {name: machine.cpus for name, machine in elsewhere.items()}
    made = hosts.resolve(document, kind, options, servers, available, cpus)
    kernel = path.kernel(document)
    machines = {host.machine for host in made.values() if host.machine is not None}
    if machines and kernel != "running":
        raise UsageError(
            f'kernel = "{kernel}" runs on this machine, but hosts are on others', hint='set kernel = "running"'
        )
    runs_already = any(host.network == "machine" for host in made.values())
    link = path.link_kind(document, kernel)
    found = TrialSpec(
        run=run,
        experiment=experiment,
        procedure=document.procedure,
        variant=variant(point, made),
        repeat=0,
        link=link,
        kernel=kernel,
        family=running_servers.family(made) if runs_already else document.family,
        cpus_sleep=document.cpus_sleep,
        hosts=made,
        machines={name: elsewhere[name].spec for name in sorted(machines)} if elsewhere is not None else {},
        links=[] if runs_already else path.links(document, kind, made, options, link),
        dataset=versions[0],
        next_dataset=versions[1] if len(versions) > 1 else None,
        further_datasets=versions[2:],
        stream=stream,
        queries=queries,
        limit_s=document.limit_s,
        # Outside of User-mode Linux whatever is made belongs to the user of its process (hostfs), so servers, which
        # have no rights, cannot write to the disk.
        storage="memory" if kernel == "uml" else "disk" if runs_already else document.storage,
        transfer=document.transfer,
        options=options,
        main_metric=_main_metric(document, kind),
    )
    check_possible(found)
    if validate := getattr(kind, "validate", None):
        validate(found)
    return found


def _main_metric(document: Document, kind: ModuleType) -> str:
    """The metric that answers the question: the document's, or else the procedure's. Raises UsageError without it."""
    found = document.main_metric or str(kind.MAIN_METRIC)
    if found not in all_metrics():
        raise UsageError(f"main_metric: there is no metric {found!r}", hint="`dnsrig list metrics` shows all")
    return found


def check_possible(spec: TrialSpec) -> None:
    """Refuse a trial that a server cannot do, before anything is started."""
    served = [host for host in spec.hosts.values() if host.server is not None]
    _check_updates(spec)
    several = any(host.source_addresses for host in served) or len(spec.primaries) > 1
    if several and spec.transfer.provisioning == "catalog":
        raise UsageError(
            "a catalog zone gives all zones the same primaries, so zones cannot be divided among them",
            hint='several primaries or source addresses need transfer.provisioning = "static"',
        )
    for name, host in spec.hosts.items():
        if host.server is not None and host.role is not None and host.network == "own":
            _check_server(spec, name, host, host.server, host.role)


def _check_proxied(spec: TrialSpec, name: str, host: HostSpec, server: Driver) -> None:
    """Refuse the PROXY protocol if the server on the host ``name`` cannot take it, or does not expect it. A described
    server has its own configuration."""
    if isinstance(server, Described):
        return
    where, transport = f"hosts.{name}.proxy_protocol", spec.transport
    announced = bool(spec.options.get("proxy_protocol")) and host.under_test
    if host.proxy_protocol and spec.hosts[spec.subject].role == "frontend" and not host.under_test:
        # A frontend asks over UDP what it is asked over UDP, and everything else over TCP.
        announced, transport = True, "udp" if transport == "udp" else "tcp"
    if announced and not host.proxy_protocol:
        raise UsageError(
            f"options.proxy_protocol: the server on the host {name} does not expect it", hint=f"set {where} = true"
        )
    if host.proxy_protocol and not server.proxied:
        raise UsageError(f"{where}: {server.title}: {server.why_not_proxied}", hint="leave it out")
    if announced and transport not in server.proxied:
        raise UsageError(
            f"the variant {spec.variant.label}: {server.title} does not take the PROXY protocol over {transport}: "
            f"{server.why_not_proxied}",
            hint=f"choose {' or '.join(sorted(server.proxied))}, or leave the variant out with --set or `exclude`",
        )


def _check_updates(spec: TrialSpec) -> None:
    """Refuse dynamic updates of zones that somebody else signed."""
    of_zones = spec.transfer.updates and spec.options.get("changes") not in ("none", "catalog")
    if of_zones and spec.dataset.signed_zones and not spec.dataset.parameters.get("unsigned_changes"):
        raise UsageError(
            f"dynamic updates change the dataset, and {spec.dataset.signed_zones:,} of its zones are signed, or have a digest",
            hint="set dataset.unsigned_changes = true to change them without new signatures",
        )


def _check_server(spec: TrialSpec, name: str, host: HostSpec, source: ServerSource, role: Role) -> None:
    """Refuse a server on the host ``name`` that does not have the role, the settings or the features of the trial."""
    server, variant = driver_of(source), f"the variant {spec.variant.label}"
    if role not in server.roles:
        raise UsageError(
            f"{variant}: {server.title} cannot be a {role} (host {name})",
            hint=f"it can be a {' or a '.join(server.roles)}",
        )
    if host.resolving is not None and server.as_resolver is not None:
        where = f"{variant} (host {name})"
        resolving.check(where, server.title, server.as_resolver, host.resolving)
        resolving.check_anchor(where, host.resolving, signed=spec.world is not None)
    _check_proxied(spec, name, host, server)
    if isinstance(server, Described):
        own_servers.check(spec, name, host, server)
    if role in ("database", "world"):
        return  # it transfers nothing; the procedure knows which servers can use a database
    if not server.answers_zones and not host.under_test and role != "resolver":
        raise UsageError(
            f"{variant}: {server.title} has no zones to send (host {name})", hint="use it only for the host under test"
        )
    if not server.answers and not getattr(procedure(spec.procedure), "WITHOUT_ANSWERS", False):
        raise UsageError(
            f"{variant}: {server.title} answers no queries, but the procedure {spec.procedure} sends some",
            hint="use it in experiments with the procedure transfer",
        )
    if what := _missing_features(spec, host, source, role):
        raise UsageError(
            f"{variant}: {server.title} as {role} (host {name}) {what}",
            hint="`dnsrig list servers` shows what each server can do; leave the variant out with --set or `exclude`",
        )


def _missing_features(spec: TrialSpec, host: HostSpec, source: ServerSource, role: Role) -> str:
    """The features of the trial that a server lacks, in words; empty if it has all."""
    server = driver_of(source)
    wanted = wanted_features(
        spec.transfer,
        through_database=host.database is not None,
        several_sources=bool(host.source_addresses),
        role=role,
        over_tls=over_tls(spec) and host.under_test,
        over_https=over_https(spec) and host.under_test,
        over_quic=over_quic(spec) and host.under_test,
        catalog_schema=int(spec.dataset.parameters.get("catalog_schema", 2)),
    )
    if not server.answers_zones:
        wanted = [feature for feature in wanted if feature in ("DoT", "DoH", "DoQ") or not server.answers]
    if (lacking := server.lacks(role, wanted, source.version)) is not None:
        feature, since = lacking
        return f"has no {feature}" + (f" before {since} (this is {source.version})" if since else "")
    conflict = server.conflict(role, wanted)
    return f"does not have {' and '.join(conflict)} together" if conflict else ""


def order(variants: list[str], repeats: int, seed: int, *, first: int = 1) -> list[TrialKey]:
    """The order of the rounds ``first`` to ``repeats``. Each round has every variant once, in a new random order, so
    that drift of the machine affects all variants equally.
    """
    shuffler = random.Random(seed)
    found = []
    for repeat in range(first, repeats + 1):
        round_ = sorted(variants)
        shuffler.shuffle(round_)
        found += [TrialKey(variant=name, repeat=repeat) for name in round_]
    return found


def wanted_servers(points: list[Point]) -> list[str]:
    found = (builds.server_of(p.document, host) for p in points for host in p.document.hosts.values())
    return sorted({name for name in found if name is not None})


def names_dataset(document: Document) -> bool:
    """Whether the experiment has a dataset. If its server runs already, it may lack one."""
    return bool(document.dataset) or not any(
        running_servers.is_running(said.server) for said in document.hosts.values()
    )


def wanted_dataset(document: Document) -> tuple[str, dict[str, Scalar]]:
    values = dict(document.dataset)
    kind = values.pop("kind", None)
    if not isinstance(kind, str):
        raise UsageError("dataset.kind is missing", hint=f"one of {', '.join(datasets.kinds())}")
    return kind, datasets.parameters(kind, values)


def provisional(experiment: str, point: Point, available: list[int]) -> TrialSpec:
    """The spec of a point before a server is installed or a dataset is made. Raises UsageError on bad input."""
    servers, own = {}, own_servers.drivers(point.document)
    for name in wanted_servers([point]):
        kind, source = sources.parse(name, own)
        servers[name] = ServerSource(kind=kind.kind, source=source, version="not resolved")
    dataset = running_servers.UNKNOWN_DATASET
    if names_dataset(point.document):
        kind_name, values = wanted_dataset(point.document)
        zones, records = datasets.size(kind_name, values)
        dataset = DatasetSpec(kind=kind_name, key="", zones=zones, records=records, serial=0, parameters=values)
    stream = None
    if point.document.stream:
        kind_name, values = streams.wanted(point.document.stream)
        stream = StreamSpec(kind=kind_name, key="", parameters=values)
    asked = point.document.queries
    queries = query_files.wanted(asked) if asked is not None else None
    return spec("dry-run", experiment, point, servers, [dataset], available, stream, queries)


def check_size(trials: int, allowed: int) -> None:
    if trials > allowed:
        raise UsageError(
            f"that would be {trials:,} trials, more than {allowed:,}",
            hint="narrow the matrix with --set, lower --repeats, or raise --max-trials",
        )


def check_rounds(repeats: int, machines: int) -> None:
    """Refuse a number of rounds that cannot be divided equally among the machines."""
    if machines > 1 and repeats % machines:
        fewer = repeats - repeats % machines
        raise UsageError(
            f"{repeats} repeats over {machines} machines: every machine must measure each variant equally often",
            hint=f"--repeats {fewer} or {fewer + machines}" if fewer else f"--repeats {machines}",
        )


def _check_queries(document: Document, kind: ModuleType) -> None:
    if document.queries is not None and not getattr(kind, "OWN_QUERIES", False):
        why = getattr(kind, "WHY_NO_OWN_QUERIES", "it asks only for the SOA of each zone, to see when it is served")
        raise UsageError(
            f"procedure {document.procedure} cannot use [queries]: {why}",
            hint="choose the procedure latency, capacity or overload, or leave [queries] out",
        )


def _check_stream(document: Document, kind: ModuleType) -> None:
    replays = getattr(kind, "REPLAYS", False)
    if replays and not document.stream:
        raise UsageError(
            f"procedure {document.procedure} replays a stream, but the experiment has none",
            hint="describe it under [stream]",
        )
    if document.stream and not replays:
        raise UsageError(
            f"procedure {document.procedure} replays nothing", hint="leave [stream] out, or choose the procedure replay"
        )
    if datasets.is_from_stream(document.dataset):
        if not document.stream:
            raise UsageError("dataset.from_stream: there is no stream", hint="describe the stream under [stream]")
        if streams.is_of_dataset(str(document.stream["kind"])):
            raise UsageError(
                f"dataset.from_stream: the stream {document.stream['kind']} is itself made from the dataset",
                hint='leave from_stream out, or set stream.kind = "capture"',
            )
