"""DNS servers under test: one file a server, with everything that is particular to it.

A driver is a class derived from ``driver.Driver`` in a module of this folder, or of another package
(`dnsrig.discovery`); its ``kind`` is the plug-in's name. It says how to configure a server for a role, start it in the
foreground, and read its log; which settings decide its performance, and which of them limit it by themselves. Nothing
outside its file names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import get_args

from dnsrig import discovery
from dnsrig.errors import UsageError
from dnsrig.rundir import Role
from dnsrig.servers.driver import Driver, Feature


@cache
def all_drivers() -> dict[str, Driver]:
    """Every driver by kind."""
    return discovery.plugins(__name__, _driver)


def _driver(kind: str, module: ModuleType) -> Driver | None:
    """Of the class with that ``kind`` that ``module`` defines."""
    own = (value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__)
    found = (value for value in own if isinstance(value, type) and issubclass(value, Driver))
    return next((value() for value in found if getattr(value, "kind", "") == kind), None)


def driver(kind: str) -> Driver:
    drivers = all_drivers()
    if kind not in drivers:
        raise UsageError(f"there is no server called {kind!r}", hint=f"known servers: {', '.join(drivers)}")
    return drivers[kind]


def feature_table() -> Iterator[tuple[Role, Feature, list[str]]]:
    """(role, feature, since which version for each driver in the order of `all_drivers`, or ``no``)."""
    drivers = all_drivers().values()
    roles: tuple[Role, ...] = ("primary", "secondary", "resolver")
    for role in roles:
        for feature in get_args(Feature):
            since = [server.support(feature).since(role) or "no" for server in drivers]
            if set(since) != {"no"}:
                yield role, feature, since
