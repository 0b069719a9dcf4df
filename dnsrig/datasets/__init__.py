"""Datasets: what servers serve. One plug-in a kind (`dnsrig.discovery`); made by the engine's `generate`, once, and
kept in the cache.

A kind is a module with ``DESCRIPTION``, ``DEFAULTS`` (parameter -> default, unit last in the name) and
``arguments(parameters) -> list[str]``, the arguments of ``dnsrig-engine generate``, and
``size(parameters) -> (zones, records)``, approximately, for an estimate of the time. A dataset is keyed by its kind,
its parameters and the generator's version, so the same experiment meets the same zones on every machine.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dnsrig import cached, discovery, paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import DatasetSpec, Scalar

FORMAT_VERSION = 2
"""Raised with the version that the engine's generator writes into dataset.json: older datasets are then made anew."""

CATALOG_FILE = "catalog.zone"
"""Beside zones.list: the catalog zone (RFC 9432) that lists all zones of the dataset, and is not one of them."""


@cache
def kinds() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("DESCRIPTION", "DEFAULTS", "arguments", "size"))


def parameters(kind: str, chosen: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """``chosen`` over the kind's defaults; unknown names and wrong types are errors."""
    if kind not in kinds():
        raise UsageError(f"there is no dataset of kind {kind!r}", hint=f"known kinds: {', '.join(kinds())}")
    defaults: dict[str, Scalar] = kinds()[kind].DEFAULTS
    for name, value in chosen.items():
        if name not in defaults:
            raise UsageError(f"dataset {kind} has no {name!r}", hint=f"it has: {', '.join(defaults)}")
        if type(value) is not type(defaults[name]):
            wanted = "a whole number" if isinstance(defaults[name], int) else "a text"
            raise UsageError(f"dataset.{name} must be {wanted}, not {value!r}")
    return {**defaults, **chosen}


def size(kind: str, values: Mapping[str, Scalar]) -> tuple[int, int]:
    """(zones, records) without making the dataset; records are approximate."""
    zones, records = kinds()[kind].size(values)
    return int(zones), int(records)


def next_version(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters of the same dataset one serial later."""
    return {**values, "serial": int(values["serial"]) + 1}


def key_of(kind: str, values: Mapping[str, Scalar]) -> str:
    text = json.dumps([FORMAT_VERSION, kind, sorted(values.items())])
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def folder(key: str) -> Path:
    """Where the dataset with that key lies, or would; it holds ``zones.list`` and ``dataset.json``."""
    return paths.cache() / "datasets" / key


def provide(kind: str, chosen: Mapping[str, Scalar]) -> DatasetSpec:
    """The dataset, made now if it is not in the cache."""
    values = parameters(kind, chosen)
    key = key_of(kind, values)
    target = folder(key)
    with cached.locked(target.parent):
        if facts(target).get("version") != FORMAT_VERSION:
            _generate(kind, values, target)
    made = facts(target)
    return DatasetSpec(
        kind=kind,
        key=key,
        zones=made["count"],
        records=made["records_total"],
        serial=made["serial"],
        parameters=values,
    )


def catalog_of(path: Path) -> tuple[str, str]:
    """The catalog zone of the dataset at ``path``: its name, and its file relative to the dataset."""
    return facts(path)["catalog"], CATALOG_FILE


def facts(folder: Path) -> dict[str, Any]:
    """What the generator says of the dataset in ``folder``: dataset.json, which it writes last; empty without it."""
    try:
        return json.loads((folder / "dataset.json").read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def _generate(kind: str, values: dict[str, Scalar], folder: Path) -> None:
    with cached.making(folder) as made:
        command = [str(paths.engine()), "generate", *kinds()[kind].arguments(values), "--out", str(made)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            detail = result.stderr.strip() or f"exit status {result.returncode}"
            raise DnsrigError(f"the dataset {kind} could not be made: {detail}")
