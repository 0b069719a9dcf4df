"""The plan of a run: variants, the spec of each trial, the order of trials, an estimate of the time."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from types import ModuleType

from dnsrig import datasets
from dnsrig.errors import UsageError
from dnsrig.experiment import path
from dnsrig.experiment.model import Document, HostDocument, Point
from dnsrig.lab.host import check_sysctl_name
from dnsrig.procedures import HostRole, procedure
from dnsrig.rundir import (
    DatasetSpec,
    HostSpec,
    Scalar,
    ServerSource,
    TransferSpec,
    TrialKey,
    TrialSpec,
    Variant,
)
from dnsrig.servers import all_drivers, driver, sources
from dnsrig.servers.driver import wanted_features

MAX_TRIALS = 1000
ADDRESS = "198.18.0.{}"
SOURCE_ADDRESSES = IPv4Address("198.19.0.0")
MOST_SOURCE_ADDRESSES = 2047
"""Of one host: they follow each other, so that a range names them, and each host has room for so many."""


def variant(point: Point) -> Variant:
    """The point's identity: readable, safe as a folder name, and unique."""
    text = "-".join(f"{label}-{value}" for label, value in point.parameters.items()) or "only"
    slug = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:60] or "variant"
    key = json.dumps(point.document.model_dump(exclude={"repeats", "title", "question", "sources"}), sort_keys=True)
    return Variant(id=f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:6]}", parameters=point.parameters)


def cpus(roles: Mapping[str, bool], available: list[int]) -> dict[str, list[int]]:
    """Host -> CPUs. ``roles``: host -> whether its server is under test.

    Two CPUs: the server under test on the last, everything else on the first. With three or more, each other server
    host gets one of its own in between, in the order of the procedure, as far as they last.
    """
    first, last = available[0], available[-1]
    between = available[1:-1]
    chosen = {}
    for host, under_test in roles.items():
        chosen[host] = [last] if under_test else [between.pop(0)] if between else [first]
    return chosen


def spec(
    run: str,
    experiment: str,
    point: Point,
    servers: Mapping[str, ServerSource],
    dataset: DatasetSpec,
    available: list[int],
    next_dataset: DatasetSpec | None = None,
) -> TrialSpec:
    """Everything that `dnsrig trial` needs for ``point``."""
    document = point.document
    kind = procedure(document.procedure)
    options = {**kind.OPTIONS, **document.options}
    _check_options(document, kind)
    roles = kind.hosts(options)
    _check_hosts(document, roles, getattr(kind, "OTHER_HOSTS", ()))
    by_default = cpus({name: role.under_test for name, role in roles.items()}, available)
    hosts = {}
    for number, (name, role) in enumerate(roles.items(), start=1):
        said = document.hosts.get(role.inherits or name) or HostDocument.model_validate({})
        _check_host(name, said, available)
        if role.role is not None and said.server is None:
            raise UsageError(f"host {name} has no server", hint=f'set hosts.{name}.server, e.g. "bind@forky"')
        server = servers[said.server].model_copy(update={"packages": {}}) if said.server else None
        hosts[name] = HostSpec(
            address=ADDRESS.format(number),
            cpus=said.cpus or by_default[name],
            sysctls={key: str(value) for key, value in said.sysctls.items()},
            server=server,
            role=role.role,
            settings=settings_of(said, server.kind) if server else {},
            under_test=role.under_test,
            source_addresses=source_addresses(number, max(said.source_addresses, role.source_addresses)),
            notified=role.notified,
            profile=said.profile,
            database=role.database,
            database_far=role.database_far,
            congestion=said.congestion,
            advmss_octets=said.advmss_octets,
            mss_clamp_octets=said.mss_clamp_octets,
        )
    kernel = path.kernel(document)
    link = path.link_kind(document, kernel)
    found = TrialSpec(
        run=run,
        experiment=experiment,
        procedure=document.procedure,
        variant=variant(point),
        repeat=0,
        link=link,
        kernel=kernel,
        hosts=hosts,
        links=path.links(document, kind, hosts, options, link),
        dataset=dataset,
        next_dataset=next_dataset,
        limit_s=document.limit_s,
        storage=document.storage,
        transfer=TransferSpec(**document.transfer.model_dump()),
        options=options,
        main_metric=kind.MAIN_METRIC,
    )
    check_possible(found)
    if check := getattr(kind, "check", None):
        check(found)
    return found


def source_addresses(host: int, count: int) -> list[str]:
    """``count`` addresses of the host with this number, one after the other.

    >>> source_addresses(2, 2)
    ['198.19.16.1', '198.19.16.2']
    """
    assert count <= MOST_SOURCE_ADDRESSES
    first = SOURCE_ADDRESSES + host * (MOST_SOURCE_ADDRESSES + 1) + 1
    return [str(first + number) for number in range(count)]


def settings_of(said: HostDocument, kind: str) -> dict[str, Scalar]:
    """The settings for a server of ``kind``: those for any, then those in the table of its name."""
    general = {name: value for name, value in said.settings.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in said.settings.items() if isinstance(value, dict)}
    if unknown := sorted(set(tables) - set(all_drivers())):
        raise UsageError(
            f"settings.{unknown[0]} is a table, but no kind of server is called so",
            hint=f"kinds are {', '.join(all_drivers())}; a setting's name with a dot is quoted",
        )
    return {**general, **tables.get(kind, {})}


def check_possible(spec: TrialSpec) -> None:
    """Refuse what a server cannot do: before anything is started, and before results look like the server's fault."""
    served = [host for host in spec.hosts.values() if host.server is not None]
    several = any(host.source_addresses for host in served) or len(spec.primaries) > 1
    if several and spec.transfer.provisioning == "catalog":
        raise UsageError(
            "a catalog zone gives all zones the same primaries, so they cannot be divided",
            hint='several primaries or source addresses need transfer.provisioning = "static"',
        )
    for name, host in spec.hosts.items():
        if host.server is None or host.role is None:
            continue
        server = driver(host.server.kind)
        if host.role not in server.roles:
            raise UsageError(
                f"the variant {spec.variant.label}: {server.title} is no {host.role} (host {name})",
                hint=f"it can be a {' or a '.join(server.roles)}",
            )
        if host.role == "database":
            continue  # it transfers nothing; which servers can use it is for the procedure to check
        wanted = wanted_features(
            spec.transfer,
            through_database=host.database is not None,
            several_sources=bool(host.source_addresses),
            role=host.role,
            over_tls=spec.over_tls and host.under_test,
            catalog_schema=int(spec.dataset.parameters.get("catalog_schema", 2)),
        )
        if not server.answers_zones:
            if not host.under_test:
                raise UsageError(
                    f"the variant {spec.variant.label}: {server.title} has no zones for others (host {name})",
                    hint="give it to the host whose server is under test",
                )
            wanted = [feature for feature in wanted if feature == "DoT" or not server.answers]
        if not server.answers and not getattr(procedure(spec.procedure), "WITHOUT_ANSWERS", False):
            raise UsageError(
                f"the variant {spec.variant.label}: {server.title} answers no queries, and the procedure {spec.procedure} asks",
                hint="take it in experiments of the procedure transfer",
            )
        lacking, conflict = server.lacks(host.role, wanted, host.server.version), server.conflict(host.role, wanted)
        if lacking is None and not conflict:
            continue
        what = f"does not have {' and '.join(conflict)} together"
        if lacking is not None:
            feature, since = lacking
            what = f"has no {feature}" + (f" before {since} (this is {host.server.version})" if since else "")
        raise UsageError(
            f"the variant {spec.variant.label}: {server.title} as {host.role} (host {name}) {what}",
            hint="`dnsrig list servers` shows what each server can do; leave the variant out with --set or `exclude`",
        )


def order(variants: list[str], repeats: int, seed: int, *, first: int = 1) -> list[TrialKey]:
    """Every variant once a round, each round shuffled anew: drift of the machine hits all variants alike.

    Rounds ``first`` to ``repeats``.
    """
    shuffler = random.Random(seed)
    found = []
    for repeat in range(first, repeats + 1):
        round_ = sorted(variants)
        shuffler.shuffle(round_)
        found += [TrialKey(variant=name, repeat=repeat) for name in round_]
    return found


def wanted_servers(points: list[Point]) -> list[str]:
    return sorted({h.server for point in points for h in point.document.hosts.values() if h.server})


def wanted_dataset(document: Document) -> tuple[str, dict[str, Scalar]]:
    values = dict(document.dataset)
    kind = values.pop("kind", None)
    if not isinstance(kind, str):
        raise UsageError("dataset.kind is missing", hint=f"one of {', '.join(datasets.kinds())}")
    return kind, datasets.parameters(kind, values)


def provisional(experiment: str, point: Point, available: list[int]) -> TrialSpec:
    """The spec as it would be, without installing a server or making a dataset. Raises on bad input."""
    servers = {}
    for name in wanted_servers([point]):
        kind, source = sources.parse(name)
        servers[name] = ServerSource(kind=kind.kind, source=source, version="not resolved")
    kind_name, values = wanted_dataset(point.document)
    zones, records = datasets.size(kind_name, values)
    dataset = DatasetSpec(kind=kind_name, path="", zones=zones, records=records, serial=0, parameters=values)
    return spec("dry-run", experiment, point, servers, dataset, available)


def check_size(trials: int, allowed: int) -> None:
    if trials > allowed:
        raise UsageError(
            f"that would be {trials:,} trials, more than {allowed:,}",
            hint="narrow the matrix with --set, lower --repeats, or allow it with --max-trials",
        )


def _check_hosts(document: Document, roles: Mapping[str, HostRole], others: Iterable[str]) -> None:
    """``others``: hosts that the procedure has with other options; what a document says of them is for those."""
    known = list(dict.fromkeys([*(name for name, role in roles.items() if not role.inherits), *others]))
    for name in document.hosts:
        if name not in known:
            raise UsageError(f"procedure {document.procedure} has no host {name!r}", hint=f"it has: {', '.join(known)}")


def _check_options(document: Document, kind: ModuleType) -> None:
    for name in document.options:
        if name not in kind.OPTIONS:
            raise UsageError(
                f"procedure {document.procedure} has no option {name!r}", hint=f"it has: {', '.join(kind.OPTIONS)}"
            )
    for name, value in document.options.items():
        default = kind.OPTIONS[name]
        if not isinstance(value, int | float if isinstance(default, float) else type(default)):
            raise UsageError(f"options.{name} = {value!r} is of the wrong type", hint=f"its default is {default!r}")


def _check_host(name: str, said: HostDocument, available: list[int]) -> None:
    """What can be known to be wrong before a host is made."""
    if missing := sorted(set(said.cpus or []) - set(available)):
        raise UsageError(
            f"hosts.{name}.cpus: there is no CPU {missing[0]} here", hint=f"there are {', '.join(map(str, available))}"
        )
    for sysctl in said.sysctls:
        check_sysctl_name(sysctl)
