"""Which defaults differ between two versions of a server, as each printed its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dnsrig import files
from dnsrig.comparison.pairs import VersionPair
from dnsrig.rundir import DEFAULTS_FILE, ServerSource, Variant
from dnsrig.runs.run import Run
from dnsrig.servers import all_drivers

CONFIGURATIONS = ("*.conf", "*.conf.gz", "*.yml", "*.yml.gz")
CONFIGURATION_BYTES = 1 << 18
"""Of a configuration so much is searched for settings: they stand before its zones."""
DEFAULTS_BYTES = 1 << 22
"""Limit for the defaults that a server prints; BIND prints some 10 kB."""


@dataclass(frozen=True)
class Default:
    """A setting whose default is another one; None where a version does not have it."""

    name: str
    base: str | None
    new: str | None
    configured: bool
    """Whether the configuration of the trials names it, so that its default may not have been in force."""


@dataclass(frozen=True)
class Defaults:
    """``unknown``: why nothing can be said, in a sentence; else empty."""

    changed: list[Default]
    unknown: str = ""


def defaults(run: Run, pair: VersionPair) -> Defaults:
    """In the order of the alphabet, settings that both versions have first."""
    if not _prints(pair.new_server):
        return Defaults([], f"{pair.new_server.kind} does not print its defaults.")
    base, new = _printed(run, pair.base, pair.base_server), _printed(run, pair.new, pair.new_server)
    if not base or not new:
        lacking = [server.version for server, found in ((pair.base_server, base), (pair.new_server, new)) if not found]
        return Defaults([], f"{' and '.join(lacking)} printed no defaults.")
    text = _configuration(run, pair.new)
    changed = [Default(name, base.get(name), new.get(name), _names(text, name)) for name in differing(base, new)]
    return Defaults(sorted(changed, key=lambda each: (None in (each.base, each.new), each.name)))


def differing(base: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """
    >>> differing({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "5", "d": ""})
    ['b', 'c', 'd']
    """
    return sorted(name for name in {*base, *new} if base.get(name) != new.get(name))


def _prints(server: ServerSource) -> bool:
    known = all_drivers().get(server.kind)
    return known is not None and bool(known.defaults_command)


def _printed(run: Run, variant: Variant, server: ServerSource) -> dict[str, str]:
    """By the first repeat that has them."""
    known = all_drivers()[server.kind]
    for folder in _folders(run, variant):
        if (path := folder / DEFAULTS_FILE).is_file():
            return known.read_defaults(_beginning(run, path, DEFAULTS_BYTES))
    return {}


def _configuration(run: Run, variant: Variant) -> str:
    """All files of a trial's, as far as they are not zones."""
    for folder in _folders(run, variant):
        found = sorted(path for pattern in CONFIGURATIONS for path in folder.glob(pattern))
        if found:
            return "\n".join(_beginning(run, path, CONFIGURATION_BYTES) for path in found)
    return ""


def _beginning(run: Run, path: Path, most_bytes: int) -> str:
    data, _ = files.beginning(path, most_bytes, run.directory)
    return data.decode(errors="replace")


def _folders(run: Run, variant: Variant) -> list[Path]:
    return [trial.directory / "servers" / trial.subject for trial in run.of_variant(variant.id)]


def _names(configuration: str, name: str) -> bool:
    last = re.escape(name.rpartition(".")[2].rpartition(" ")[2])
    return re.search(rf"(?<![\w-]){last}(?![\w-])", configuration) is not None
