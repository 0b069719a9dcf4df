"""Paths on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from dnsrig.errors import DnsrigError, UsageError

AWKWARD = re.compile(r"[\s:#\"';{}]")
"""Characters in a path with a meaning in a configuration or a mount."""


def cache() -> Path:
    """Folder of root file systems and datasets, which is safe to delete. ``DNSRIG_CACHE`` overrides it."""
    if chosen := os.environ.get("DNSRIG_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dnsrig"


def check_for_servers(path: Path) -> None:
    """Refuse a path that servers would misread in their configuration."""
    if AWKWARD.search(str(path)):
        raise UsageError(
            f"servers cannot be given the path {path}",
            hint="use a folder without spaces, colons, quotes or #: --runs for runs, DNSRIG_CACHE for the cache",
        )


def engine() -> Path:
    """The engine's binary: beside the Python interpreter, otherwise on PATH. ``DNSRIG_ENGINE`` overrides it."""
    if chosen := os.environ.get("DNSRIG_ENGINE"):
        return Path(chosen)
    for folder in (Path(sysconfig.get_path("scripts")), Path(sys.argv[0]).parent):
        if (folder / "dnsrig-engine").is_file():
            return folder / "dnsrig-engine"
    if found := shutil.which("dnsrig-engine"):
        return Path(found)
    raise DnsrigError("the program dnsrig-engine is missing", hint="`make setup` builds and installs it")


def builtin_experiments() -> Path:
    """The folder of the built-in experiments; `experiments` at the top of the checkout leads here."""
    return Path(__file__).resolve().parent / "experiment" / "builtin"
