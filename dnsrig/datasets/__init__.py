"""Datasets: the zones that servers serve. One plug-in a kind (`dnsrig.discovery`); the engine's `generate` makes a
dataset once, and the cache keeps it.

A kind is a module with ``DESCRIPTION``, ``DEFAULTS`` (parameter -> default, unit last in the name) and
``arguments(parameters) -> list[str]``, the arguments of ``dnsrig-engine generate``, and
``size(parameters) -> (zones, records)``, approximately, for an estimate of the time. It may have

- ``RANGES`` (by default the ranges of `dnsrig.parameters`): parameter -> least and most that it may be,
- ``output(folder, parameters) -> list[str]`` (``--out FOLDER`` by default): the arguments for the output of the engine,
- ``finish(folder, version)`` (nothing by default): writes ``zones.list`` and ``dataset.json``, if the engine does not,
- ``files(parameters) -> list[Path]`` (none by default): the user's files that the dataset is made of. The engine reads
  their paths, one on each line, and the key depends on their content,
- ``VERSION`` (1 by default): raised when the engine makes another dataset from the same arguments,
- ``of_stream(stream) -> list[str]`` and the parameter ``from_stream`` (False by default): further arguments, if the
  dataset is made from the experiment's stream.

The key of a dataset is a hash of its kind, its parameters, the arguments of the engine, the versions and the stream
that it is made from, so that an experiment has the same zones on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dnsrig import cached, checksums, discovery, engine, paths
from dnsrig.errors import UsageError
from dnsrig.parameters import chosen
from dnsrig.rundir import DatasetSpec, Scalar

MOST_RECORDS = 1_000_000_000
FORMAT_VERSION = 2
"""Raised with the version that the engine's generator writes into dataset.json: older datasets are then made anew."""

QUERIES_FILE = "queries.txt"
"""File beside zones.list if the zones are the user's own: their names and types, in the format of `load --queries`."""
CATALOG_FILE = "catalog.zone"
"""File beside zones.list: the catalog zone (RFC 9432), which lists all zones of the dataset except itself."""


@cache
def kinds() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("DESCRIPTION", "DEFAULTS", "arguments", "size"))


def parameters(kind: str, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """``values`` over the defaults of the kind. Raises UsageError on bad input."""
    if kind not in kinds():
        raise UsageError(f"there is no dataset of kind {kind!r}", hint=f"known kinds: {', '.join(kinds())}")
    module = kinds()[kind]
    return chosen("dataset", f"dataset {kind} has no", module.DEFAULTS, values, getattr(module, "RANGES", {}))


def size(kind: str, values: Mapping[str, Scalar]) -> tuple[int, int]:
    """(zones, records) without making the dataset; records are approximate."""
    zones, records = kinds()[kind].size(values)
    if records > MOST_RECORDS:
        raise UsageError(
            f"the dataset {kind} would have {records:,} records, more than {MOST_RECORDS:,}",
            hint="make it smaller: a record needs at least 50 bytes of disk",
        )
    return int(zones), int(records)


def are_own(kind: str) -> bool:
    """Whether the zones are the user's own, so that dnsrig knows only their records."""
    return kind in kinds() and hasattr(kinds()[kind], "files")


def next_version(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters of the same dataset one serial later. Raises UsageError if dnsrig does not make its zones."""
    if "serial" not in values:
        raise UsageError(
            "the procedure needs a second version of the zones, and this dataset has one",
            hint='set dataset.kind = "tiny-zones" or "tld"',
        )
    return {**values, "serial": int(values["serial"]) + 1}


def is_from_stream(values: Mapping[str, Scalar]) -> bool:
    """Whether a dataset with these parameters is made from the experiment's stream, and after it."""
    return bool(values.get("from_stream", False))


def key_of(kind: str, values: Mapping[str, Scalar], stream: Path | None = None) -> str:
    """The key of a dataset. It depends on the content of ``stream``, not on its path."""
    module = kinds()[kind]
    source: Any = checksums.sha256(stream) if stream is not None else None
    versions = [FORMAT_VERSION, getattr(module, "VERSION", 1)]
    own = _files(kind, values)
    if own:
        values, source = {**values, "files": ""}, [(path.name, checksums.sha256(path)) for path in own]
    text = json.dumps([versions, kind, sorted(values.items()), module.arguments(values), source])
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def folder(key: str) -> Path:
    """Folder of the dataset with this key, which may not exist yet; it has ``zones.list`` and ``dataset.json``."""
    return paths.cache() / "datasets" / key


def provide(kind: str, given: Mapping[str, Scalar], stream: Path | None = None) -> DatasetSpec:
    """The dataset, which is made now if the cache does not have it; from ``stream`` if there is one."""
    values = parameters(kind, given)
    key = key_of(kind, values, stream)
    target = folder(key)
    with cached.locked(target.parent):
        if facts(target).get("version") != FORMAT_VERSION:
            _generate(kind, values, target, stream)
    made = facts(target)
    return DatasetSpec(
        kind=kind,
        key=key,
        zones=made["count"],
        records=made["records_total"],
        serial=made["serial"],
        parameters=values,
    )


def names(folder: Path) -> Path:
    """The table of names that clients ask for, as `generate clients --names` reads it."""
    table = folder / "names"
    return table if table.exists() else folder / "zones.list"


def catalog_of(path: Path) -> tuple[str, str]:
    """The catalog zone of the dataset at ``path``: its name, and its file relative to the dataset."""
    return facts(path)["catalog"], CATALOG_FILE


def facts(folder: Path) -> dict[str, Any]:
    """The generator's description of the dataset in ``folder``: dataset.json, which it writes last; empty without
    it."""
    try:
        return json.loads((folder / "dataset.json").read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def _generate(kind: str, values: dict[str, Scalar], folder: Path, stream: Path | None) -> None:
    with cached.making(folder) as made:
        module = kinds()[kind]
        output = getattr(module, "output", lambda folder, values: ["--out", str(folder)])
        source = module.of_stream(stream) if stream is not None else []
        arguments = ["generate", *module.arguments(values), *source, *output(made, values)]
        listed = "".join(f"{path.resolve()}\n" for path in _files(kind, values))
        engine.run(arguments, f"the dataset {kind} could not be generated", text=listed)
        if finish := getattr(module, "finish", None):
            finish(made, FORMAT_VERSION)


def _files(kind: str, values: Mapping[str, Scalar]) -> list[Path]:
    own = getattr(kinds()[kind], "files", None)
    return own(values) if own else []
