"""Zones of your own, from master files (docs/how-to/own-zones.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar

DESCRIPTION = "zones of your own: master files, each with one zone"
BYTES_PER_RECORD = 50
"""Average size of a record in a master file, for an estimate of the time."""
DEFAULTS: dict[str, Scalar] = {"files": "", "catalog_schema": 2}
RANGES = {"catalog_schema": (1, 2)}


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    return ["files", "--list=/dev/stdin", f"--catalog-schema={parameters['catalog_schema']}"]


def files(parameters: Mapping[str, Scalar]) -> list[Path]:
    """The zone files that ``files`` names: patterns of the shell with commas between them, from the current folder on.

    Raises UsageError if a pattern matches no file.
    """
    if not str(parameters["files"]).strip():
        raise UsageError("dataset.files is missing", hint='name the zone files, e.g. files = "zones/*.zone"')
    found: set[Path] = set()
    for pattern in (part.strip() for part in str(parameters["files"]).split(",")):
        anchored = Path(pattern).expanduser()
        below = anchored.relative_to(anchored.anchor)
        matching = {path for path in Path(anchored.anchor).glob(str(below)) if path.is_file()} if below.parts else set()
        if not matching:
            raise UsageError(
                f"dataset.files: no file matches {pattern}", hint="it is looked for from the current folder"
            )
        found |= matching
    return sorted(found)


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    found = files(parameters)
    return len(found), sum(path.stat().st_size for path in found) // BYTES_PER_RECORD
