"""Servers under test: a file or a folder for each, with everything that is particular to it.

A driver is a class derived from ``driver.Driver``, with a ``kind``, in a module of this folder or of another package
(`dnsrig.discovery`). It configures a server for a role, starts it in the foreground, and reads its log; it declares
which settings decide the performance of the server, which of them are limits, and how the server is built. Nothing
outside its module names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import get_args

from dnsrig import discovery
from dnsrig.errors import UsageError
from dnsrig.rundir import Role, ServerSource
from dnsrig.servers import described
from dnsrig.servers.driver import Driver, Feature
from dnsrig.servers.running import RUNNING


@cache
def all_drivers() -> dict[str, Driver]:
    """Every driver by kind, in alphabetical order."""
    found: dict[str, Driver] = {}

    def add(name: str, module: ModuleType) -> ModuleType | None:
        drivers = _drivers(module)
        if taken := sorted({driver.kind for driver in drivers} & set(found)):
            raise ValueError(f"the name {taken[0]} is taken")
        found.update({driver.kind: driver for driver in drivers})
        return module if drivers else None

    discovery.plugins(__name__, add)
    return dict(sorted(found.items()))


def _drivers(module: ModuleType) -> list[Driver]:
    """An instance of each class derived from `Driver` that ``module`` defines and that has a ``kind``."""
    own = (value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__)
    found = (value for value in own if isinstance(value, type) and issubclass(value, Driver))
    return [value() for value in found if hasattr(value, "kind") and value is not type(RUNNING)]


def driver(kind: str) -> Driver:
    if kind == RUNNING.kind:
        return RUNNING  # not in a list: it is no server that dnsrig can start
    drivers = all_drivers()
    if kind not in drivers:
        raise UsageError(
            f"there is no server called {kind!r}",
            hint=f"known servers: {', '.join(drivers)}, and {RUNNING.kind}@ADDRESS",
        )
    return drivers[kind]


def driver_of(source: ServerSource) -> Driver:
    """The driver of an installed server: of its kind, or of the experiment that describes the server."""
    if source.described is not None:
        return described.driver_of(source.kind, source.described)
    return driver(source.kind)


def feature_table() -> Iterator[tuple[Role, Feature, list[str]]]:
    """(role, feature, since which version for each driver in the order of `all_drivers`, or ``no``)."""
    drivers = all_drivers().values()
    roles: tuple[Role, ...] = ("primary", "secondary", "resolver", "frontend")
    for role in roles:
        for feature in get_args(Feature):
            since = [server.support(feature).since(role) or "no" for server in drivers]
            if set(since) != {"no"}:
                yield role, feature, since
