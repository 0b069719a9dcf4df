"""Finds plug-ins, so that a new file is a new plug-in: modules of a package of dnsrig, and modules of other packages.

Another package declares a plug-in by an entry point. Its group is named after the folder of the package of dnsrig
(``dnsrig.traps``, ``dnsrig.charts``), its name is the name of the plug-in, and its value is the module.
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
    """Name -> plug-in, for the plug-ins of ``package``, then of other packages.

    ``make`` turns a name and a module into a plug-in, or returns None for a module that is not one. If a plug-in of
    another package cannot be loaded or made, or its name is taken, it is left out, with a line on standard error.
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
        except Exception as error:  # code of another package may raise anything, and the other plug-ins continue
            logging.getLogger(__name__).warning("%s left out: %s: %s", _described(point), type(error).__name__, error)
    return found


def having(*names: str) -> Callable[[str, ModuleType], ModuleType]:
    """A ``make`` for `plugins` that returns the module itself, which must have all of ``names``."""

    def make(name: str, module: ModuleType) -> ModuleType:
        if missing := [wanted for wanted in names if not hasattr(module, wanted)]:
            raise AttributeError(f"{module.__name__} has no {', '.join(missing)}")
        return module

    return make


def is_of(thing: Callable[..., object], module: ModuleType) -> bool:
    """Whether ``thing`` is defined in ``module``, or in a module below it."""
    return f"{thing.__module__}.".startswith(f"{module.__name__}.")


def name_of(module: ModuleType) -> str:
    """Name of a plug-in of dnsrig: the name of its file, with dashes."""
    return module.__name__.rpartition(".")[2].replace("_", "-")


def packages() -> dict[str, str]:
    """Name -> version of the installed packages with plug-ins. Results may depend on them."""
    from importlib.metadata import distributions

    return {
        package.name: package.version
        for package in distributions()
        if any(point.group.startswith(PREFIX) for point in package.entry_points)
    }


def _described(point: EntryPoint) -> str:
    package = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"plug-in {point.name} ({point.group}){package}"
