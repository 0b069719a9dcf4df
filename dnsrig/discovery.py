"""Finds plug-ins: the modules of a package, so that adding one is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def modules(package: str) -> list[ModuleType]:
    """Import and return every public module of ``package``, sorted by name."""
    parent = importlib.import_module(package)
    names = sorted(m.name for m in pkgutil.iter_modules(parent.__path__) if not m.name.startswith("_"))
    return [importlib.import_module(f"{package}.{name}") for name in names]
