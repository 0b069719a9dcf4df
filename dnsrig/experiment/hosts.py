"""The hosts of a trial, from the settings of an experiment and the roles that its procedure demands."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from dnsrig import procedures
from dnsrig.errors import UsageError
from dnsrig.experiment import builds, own_configuration, own_servers, running_servers
from dnsrig.experiment.model import Document, HostDocument
from dnsrig.lab import addresses
from dnsrig.lab.host import check_sysctl_name
from dnsrig.procedures import HostRole
from dnsrig.rundir import OBSERVER, HostDuties, HostOptions, HostSpec, Resolving, Scalar, ServerSource
from dnsrig.servers import all_drivers, driver_of
from dnsrig.servers.described import Described
from dnsrig.servers.driver import Driver

OWN_FILES = ("config", "include")
"""Keys of a host that name files of the user."""


def resolve(
    document: Document,
    kind: ModuleType,
    options: Mapping[str, Scalar],
    servers: Mapping[str, ServerSource],
    available: list[int],
    elsewhere: Mapping[str, list[int]] | None = None,
) -> dict[str, HostSpec]:
    """The hosts of the procedure ``kind``, by name.

    ``servers``: `KIND@SOURCE` -> the installed server; ``available``: CPUs; ``elsewhere``: name of another machine ->
    its CPUs; None: not known yet. Raises UsageError on hosts that cannot exist.
    """
    roles = procedures.hosts(kind, options)
    asked = running_servers.under_test(document, roles)
    if asked is not None:
        roles = running_servers.roles(document, kind, roles, asked)
    _check_names(document, roles, getattr(kind, "OTHER_HOSTS", ()))
    here = {name: role.under_test for name, role in roles.items() if _machine(document, name, role) is None}
    by_default = cpus(here, available)
    own = own_servers.drivers(document)
    found: dict[str, HostSpec] = {}
    blocks = itertools.count()
    for number, (name, role) in enumerate(roles.items(), start=1):
        said = _said(document, name, role)
        there = available if said.machine is None else _cpus_elsewhere(said.machine, elsewhere)
        _check(name, said, there, resolves=role.role == "resolver")
        _check_place(name, said, role)
        if role.role is not None and said.server is None:
            raise UsageError(f"host {name} has no server", hint=f'set hosts.{name}.server, e.g. "bind@forky"')
        more = max(said.source_addresses, role.source_addresses)
        wanted = builds.server_of(document, said)
        server = _of_point(servers[wanted], own) if wanted else None
        address: dict[str, Any] = {"address": addresses.own(number, document.family)}
        if asked is not None:
            family_of = running_servers.address_of(document, asked)
            address = running_servers.place(server, said, name == asked, family_of)
        files = {key: own_configuration.read(document, getattr(said, key), f"hosts.{name}.{key}") for key in OWN_FILES}
        if server:
            own_configuration.check(name, said, role.role, driver_of(server), files)
        found[name] = HostSpec(
            **{**said.model_dump(include=set(HostOptions.model_fields)), **address},
            **role.model_dump(include=set(HostDuties.model_fields)),
            cpus=said.cpus or _cpus(said, by_default.get(name) or there[1:] or there, elsewhere),
            sysctls={key: str(value) for key, value in said.sysctls.items()},
            server=server,
            settings=settings_of(said, server.kind, own) if server else {},
            config=files["config"],
            include=files["include"],
            resolving=(said.resolving or Resolving()) if role.role == "resolver" and not asked else None,
            source_addresses=addresses.sources(next(blocks), more, document.family) if more else [],
            client_range=addresses.clients(*role.client_share, document.family) if role.replays and not asked else "",
            server_ranges=[str(addresses.INTERNET.ipv4), str(addresses.INTERNET.ipv6)] if role.role == "world" else [],
        )
    places = Counter((host.machine, host.nic) for host in found.values())
    for host in found.values():
        host.nic_shared = host.nic is not None and places[host.machine, host.nic] > 1
    return found


def _of_point(server: ServerSource, own: Mapping[str, Driver]) -> ServerSource:
    """An installed server as the trials of one point have it: with the description of that point."""
    driver = own.get(server.kind)
    said = driver.described if isinstance(driver, Described) else None
    return server.model_copy(update={"packages": {}, "described": said})


def _said(document: Document, name: str, role: HostRole) -> HostDocument:
    return document.hosts.get(role.inherits or name) or HostDocument.model_validate({})


def _machine(document: Document, name: str, role: HostRole) -> str | None:
    return _said(document, name, role).machine


def _cpus_elsewhere(machine: str, elsewhere: Mapping[str, list[int]] | None) -> list[int]:
    """The CPUs of another machine; [0] if they are not known yet."""
    if elsewhere is None:
        return [0]
    if machine not in elsewhere:
        raise UsageError(
            f"the experiment needs the machine {machine}, whose address is not known",
            hint="name a file of machines that contains it: --machines machines.toml",
        )
    return elsewhere[machine]


def _cpus(said: HostDocument, usual: list[int], elsewhere: Mapping[str, list[int]] | None) -> list[int]:
    """The CPUs of a host: all CPUs of the machine for a server that runs there already."""
    watched = running_servers.watched(said)
    return usual if watched is None else _cpus_elsewhere(watched, elsewhere)


def _check_place(name: str, said: HostDocument, role: HostRole) -> None:
    """Refuse a host that cannot be on another machine. Generators and servers that are not under test can."""
    what = {
        "is under test": role.under_test,
        "looks at all others": name == OBSERVER,
        "is a database": role.role == "database",
    }
    if said.machine is not None and (why := next((text for text, applies in what.items() if applies), "")):
        raise UsageError(
            f"hosts.{name}.machine: it {why}, so it must be on the machine on which the run starts",
            hint="start the run there, and put hosts that send queries, or a primary, on other machines",
        )
    source = (said.server or "").partition("@")[2]
    if said.machine is not None and (source == "system" or source.startswith("/")):
        raise UsageError(
            f"hosts.{name}.server = {said.server!r} is installed only on this machine",
            hint="dnsrig installs servers from a Debian suite or a repository on other machines, e.g. knot@forky",
        )


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


def settings_of(said: HostDocument, kind: str, own: Iterable[str] = ()) -> dict[str, Scalar]:
    """The settings for a server of ``kind``: the common settings, then the settings in the table of its kind."""
    general = {name: value for name, value in said.settings.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in said.settings.items() if isinstance(value, dict)}
    if unknown := sorted(set(tables) - set(all_drivers()) - set(own)):
        raise UsageError(
            f"settings.{unknown[0]} is a table, but no kind of server has this name",
            hint=f"kinds are {', '.join(all_drivers())}; a setting's name with a dot is quoted",
        )
    return {**general, **tables.get(kind, {})}


def _check_names(document: Document, roles: Mapping[str, HostRole], others: Iterable[str]) -> None:
    """Refuse settings of unknown hosts. ``others``: hosts that the procedure has only with other options."""
    known = list(dict.fromkeys([*(name for name, role in roles.items() if not role.inherits), *others]))
    for name in document.hosts:
        if name not in known:
            raise UsageError(f"procedure {document.procedure} has no host {name!r}", hint=f"it has: {', '.join(known)}")


def _check(name: str, said: HostDocument, available: list[int], *, resolves: bool) -> None:
    """Refuse settings of a host that are wrong on any machine."""
    if said.resolving is not None and not resolves:
        raise UsageError(
            f"hosts.{name}.resolving: this host is not a resolver", hint="leave it out, or set it for the resolver"
        )
    if said.watch and not running_servers.is_running(said.server):
        raise UsageError(
            f"hosts.{name}.watch: dnsrig samples every host that it makes", hint="it is for servers that run already"
        )
    where = "here" if said.machine is None else f"on {said.machine}"
    if missing := sorted(set(said.cpus or []) - set(available)):
        raise UsageError(
            f"hosts.{name}.cpus: there is no CPU {missing[0]} {where}",
            hint=f"there are {', '.join(map(str, available))}",
        )
    for sysctl in said.sysctls:
        check_sysctl_name(sysctl)
