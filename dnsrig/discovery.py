"""Finds plug-ins, so that adding one is adding a file: the modules of a package of ours, and those of other installed
packages.

Another package brings one by an entry point: of the group that is named as our package's folder (``dnsrig.traps``,
``dnsrig.charts``), with the plug-in's name, and its module as value.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Plugin = TypeVar("Plugin")
PREFIX = "dnsrig."


def modules(package: str) -> list[ModuleType]:
    """Import and return every public module of ``package``, sorted by name."""
    parent = importlib.import_module(package)
    names = sorted(m.name for m in pkgutil.iter_modules(parent.__path__) if not m.name.startswith("_"))
    return [importlib.import_module(f"{package}.{name}") for name in names]


def plugins(package: str, make: Callable[[str, ModuleType], Plugin | None]) -> dict[str, Plugin]:
    """What ``make`` makes of each plug-in's name and module, None of a module that is none: those of ``package``, then
    those of other packages.

    One of another package that cannot be loaded or made, or whose name is taken, is left out, and a line on standard
    error says why.
    """
    from importlib.metadata import entry_points

    made = ((name_of(module), make(name_of(module), module)) for module in modules(package))
    found = {name: plugin for name, plugin in made if plugin is not None}
    for point in entry_points(group=PREFIX + package.rpartition(".")[2]):
        try:
            if point.name in found:
                raise ValueError("the name is taken")
            if (plugin := make(point.name, point.load())) is None:
                raise ValueError(f"{point.value} does not have what it takes")
            found[point.name] = plugin
        except Exception as error:  # whatever it is: it is not ours, and the others go on
            logging.getLogger(__name__).warning("%s left out: %s: %s", _told(point), type(error).__name__, error)
    return found


def having(*names: str) -> Callable[[str, ModuleType], ModuleType]:
    """For `plugins`: the module itself, which must have all of ``names``."""

    def make(name: str, module: ModuleType) -> ModuleType:
        if missing := [wanted for wanted in names if not hasattr(module, wanted)]:
            raise AttributeError(f"{module.__name__} has no {', '.join(missing)}")
        return module

    return make


def name_of(module: ModuleType) -> str:
    """Of a plug-in of ours: its file's, with dashes."""
    return module.__name__.rpartition(".")[2].replace("_", "-")


def packages() -> dict[str, str]:
    """Name -> version of the installed packages that bring plug-ins: results may depend on them."""
    from importlib.metadata import distributions

    return {
        package.name: package.version
        for package in distributions()
        if any(point.group.startswith(PREFIX) for point in package.entry_points)
    }


def _told(point: EntryPoint) -> str:
    package = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"plug-in {point.name} ({point.group}){package}"
