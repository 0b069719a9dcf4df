"""Procedures: one file a kind of measurement.

A procedure is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``DESCRIPTION``: what it measures, in a sentence,
- ``MAIN_METRIC``: the metric that answers its question; metrics and traps recognise by it what a trial measured,
- ``NEXT_VERSION`` (False by default): whether it needs the zones of the dataset in two versions;
  ``next_version(values, options)`` (one version later by default): the parameters of the second, or of the second and
  all further ones in a list, or None,
- ``OPTIONS``: name (unit last) -> default,
- ``RANGES`` (by default the ranges of `dnsrig.parameters`): option -> least and most that it may be,
- ``CHOICES`` (none by default): option -> the values that it may have,
- ``REPLAYS`` (False by default): whether it replays a stream,
- ``OWN_QUERIES`` (False by default): whether it can ask queries of the user's own, of ``[queries]``;
  ``WHY_NO_OWN_QUERIES``: a clause that says why not,
- ``SOCKETS`` (False by default): whether the TCP connections of its hosts are listed one by one while it measures, as
  they are on an emulated path without a replay,
- ``WITHOUT_ANSWERS`` (False by default): whether it can measure a server that answers no queries,
- ``OF_RUNNING_SERVER`` (False by default): whether it can measure a server that runs already, which it only asks,
- ``expected_s(options)`` (0 by default): how long it measures, whatever the dataset, for an estimate of the time,
- ``checks(spec) -> [name]``: its manipulation checks (`dnsrig.checks`): facts that must be seen on the hosts
  while it measures, or the variant is not what its name says; a check that may apply to any
  procedure states it itself,
- ``validate(spec)`` (nothing by default): raises ``UsageError`` on a spec that it cannot measure,
- ``hosts(options) -> {name: HostRole}``: the hosts it needs, with the server under test. Every trial has one more,
  `observer`, for the instruments that play no other host, and a link from it to each DNS server,
- ``OTHER_HOSTS`` (none by default): hosts that it has only with other options; an experiment may name them anyway,
- ``links(hosts) -> [(name, name)]``: which of its hosts are joined,
- ``far(hosts, options) -> [(name, name)]`` (by default the links between the host under test and its primaries): the
  links that an experiment's ``[path]`` applies to, each in the direction of the zones,
- ``measure(context) -> Result``: the phases of one trial.

``context/`` has the tools of a measurement, and ``parts/`` what is no procedure itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from pydantic import ConfigDict

from dnsrig import datasets, discovery, parameters
from dnsrig.errors import UsageError
from dnsrig.rundir import OBSERVER, HostDuties, Outcome, Scalar


@dataclass(frozen=True)
class Result:
    """Conclusion of a procedure about one trial."""

    outcome: Outcome
    reason: str = ""


class HostRole(HostDuties):
    """The demands of a procedure on a host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    inherits: str = ""
    """The host whose table in the experiment applies to this one too, e.g. the first of several primaries."""
    source_addresses: int = 0
    """Number of additional addresses, e.g. one for each secondary that an instrument plays."""
    replays: bool = False
    """Whether the host plays the clients of a stream, and has their range of addresses."""
    client_share: tuple[int, int] = (0, 1)
    """Number of the host, counted from 0, and number of the hosts that share these clients and addresses."""


@cache
def all_procedures() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, lambda name, module: module if hasattr(module, "measure") else None)


def options_of(kind: ModuleType, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """All options of a procedure: ``given`` over its defaults. Raises UsageError on an unknown option, or a wrong
    value."""
    unknown = f"procedure {discovery.name_of(kind)} has no option"
    parameters.chosen("options", unknown, kind.OPTIONS, given, getattr(kind, "RANGES", {}))
    options = {**kind.OPTIONS, **given}
    for name, known in getattr(kind, "CHOICES", {}).items():
        if options[name] not in known:
            raise UsageError(f"options.{name} = {options[name]!r} is invalid", hint=f"one of {', '.join(known)}")
    return options


def versions(kind: ModuleType, values: Mapping[str, Scalar], options: Mapping[str, Scalar]) -> list[dict[str, Scalar]]:
    """The parameters of the dataset, in each version that a procedure needs."""
    if not getattr(kind, "NEXT_VERSION", False):
        return [dict(values)]
    following = getattr(kind, "next_version", lambda values, options: datasets.next_version(values))
    later = following(values, options)
    return [dict(values), *(later if isinstance(later, list) else [later] if later is not None else [])]


def hosts(kind: ModuleType, options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """The hosts that a procedure needs, and the host of the instruments."""
    return {**kind.hosts(options), OBSERVER: HostRole()}


def links(kind: ModuleType, hosts: Mapping[str, HostDuties]) -> list[tuple[str, str]]:
    """The links that a procedure needs, and a link from the host of the instruments to each DNS server."""
    own = {name: host for name, host in hosts.items() if name != OBSERVER}
    servers = [name for name, host in own.items() if host.role not in (None, "database")]
    return [*kind.links(own), *((OBSERVER, name) for name in servers)]


def procedure(name: str) -> ModuleType:
    if name not in all_procedures():
        raise UsageError(f"there is no procedure {name!r}", hint=f"known procedures: {', '.join(all_procedures())}")
    return all_procedures()[name]
