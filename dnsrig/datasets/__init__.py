"""Datasets: the zones that servers serve. One plug-in a kind (`dnsrig.discovery`); the engine's `generate` makes a
dataset once, and the cache keeps it.

A kind is a module with ``DESCRIPTION``, ``DEFAULTS`` (parameter -> default, unit last in the name) and
``arguments(parameters) -> list[str]``, the arguments of ``dnsrig-engine generate``, and
``size(parameters) -> (zones, records)``, approximately, for an estimate of the time. It may have

- ``RANGES`` (by default the ranges of `dnsrig.parameters`): parameter -> least and most that it may be,
- ``output(folder, parameters) -> list[str]`` (``--out FOLDER`` by default): the arguments for the output of the engine,
- ``finish(folder, version)`` (nothing by default): writes ``zones.list`` and ``dataset.json``, if the engine does not,
- ``listed(parameters) -> lines`` (none by default): a line for each of the user's files that the dataset is made of.
  The engine reads these lines from standard input,
- ``identity(parameters) -> data for JSON``, if there are such files: the key depends on it, and not on the parameters,
- ``PLACES`` (none by default): parameter -> ``path``, ``patterns``, ``versions`` (lists of patterns) or ``names`` (a
  list of names), for `anchored`,
- ``earlier(parameters) -> parameters or None``: the dataset whose folder the engine needs (``--after``),
- ``following(parameters)`` (``serial`` one higher by default): the parameters of the next version,
- ``VERSION`` (1 by default): raised when the engine makes another dataset from the same arguments,
- ``of_stream(stream) -> list[str]`` and the parameter ``from_stream`` (False by default): further arguments, if the
  dataset is made from the experiment's stream.

The key of a dataset is a hash of its kind, its parameters, the arguments of the engine, the versions and the stream
that it is made from, so that an experiment has the same zones on every machine.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dnsrig import cached, checksums, discovery, engine, paths
from dnsrig.errors import UsageError
from dnsrig.parameters import chosen
from dnsrig.rundir import DatasetSpec, Scalar

Note = Callable[[str], None]
MOST_RECORDS = 1_000_000_000
FORMAT_VERSION = 2
"""Raised with the version that the engine's generator writes into dataset.json: older datasets are then made anew."""

QUERIES_FILE = "queries.txt"
"""File beside zones.list if the zones are the user's own: their names and types, in the format of `load --queries`."""
SERIALS_FILE = "serials.txt"
"""File beside zones.list if zones may have different serials: the serial of each, in the same order."""
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


def anchored(name: str, value: Any, folder: Path) -> Any:
    """The value of the parameter ``name`` of a dataset, if it is a path or a pattern, with ``folder`` before it. Of a
    list of patterns or of names, one text with one of them on each line. Other values are returned as they are."""
    place = placed().get(name)
    if place is None:
        return value
    if place == "names":
        return "\n".join(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
    if isinstance(value, list) and value and all(value):
        between = "\n\n" if place == "versions" else "\n"
        parts = [_anchored_version(each, folder) if place == "versions" else _anchored(each, folder) for each in value]
        return between.join(parts) if all(isinstance(part, str) for part in parts) else value
    return _anchored(value, folder, pattern=place != "path")


def _anchored_version(value: Any, folder: Path) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        return _anchored(value, folder)
    return "\n".join(_anchored(each, folder) for each in value)


def _anchored(value: Any, folder: Path, *, pattern: bool = True) -> Any:
    if not isinstance(value, str) or not value:
        return value
    if "\n" in value:
        raise UsageError("a line end in a pattern of the dataset", hint="give several patterns as a list")
    before = str(folder.absolute())
    return str(Path(glob.escape(before) if pattern else before) / Path(value).expanduser())


@cache
def placed() -> dict[str, str]:
    """The parameters of all kinds that are paths, patterns of paths, or versions."""
    return {name: place for module in kinds().values() for name, place in getattr(module, "PLACES", {}).items()}


def paths_of(kind: Any) -> set[str]:
    """The parameters of a kind that say where the user's files are."""
    places = getattr(kinds().get(kind), "PLACES", {}) if isinstance(kind, str) else {}
    return {name for name, place in places.items() if place != "names"}


def includes_below(kind: Any, folder: Path) -> dict[str, str]:
    """The parameter of a kind whose files may include others: the folder that these are in."""
    has = isinstance(kind, str) and kind in kinds() and "include_below" in kinds()[kind].DEFAULTS
    return {"include_below": str(folder.absolute())} if has else {}


def described(kind: str, values: Mapping[str, Scalar]) -> str:
    """A kind, with the parameters that are not at their defaults: ``tiny-zones zones=30``."""
    usual = kinds()[kind].DEFAULTS
    unusual = {name: value for name, value in values.items() if value != usual[name] and name != "include_below"}
    return " ".join([kind, *(f"{name}={value}".replace("\n", " ") for name, value in unusual.items())])


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
    return kind in kinds() and hasattr(kinds()[kind], "listed")


def has_own_versions(values: Mapping[str, Scalar]) -> bool:
    """Whether later versions of the zones are the user's own files, too."""
    return bool(values.get("next"))


def next_version(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters of the same dataset one version later. Raises UsageError if it has one version only."""
    if "version" in values:
        of_kind = next(module for module in kinds().values() if module.DEFAULTS.keys() == values.keys())
        return dict(of_kind.following(values))
    if "serial" not in values:
        raise UsageError(
            "the procedure needs a second version of the zones, and this dataset has one",
            hint='set dataset.kind = "tiny-zones", "tld" or "files"',
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
    identity = getattr(module, "identity", None)
    told = [identity(values)] if identity else [sorted(values.items()), module.arguments(values), source]
    text = json.dumps([versions, kind, *told])
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def own_files(kind: str, values: Mapping[str, Scalar]) -> list[Path]:
    """The user's files in the order of the zones; empty if there are none, or if the order is not known."""
    if not are_own(kind) or values.get("version"):
        return []
    return [Path(line.rstrip("\n").split("\t")[-1]) for line in kinds()[kind].listed(values)]


def folder(key: str) -> Path:
    """Folder of the dataset with this key, which may not exist yet; it has ``zones.list`` and ``dataset.json``."""
    return paths.cache() / "datasets" / key


def provide(
    kind: str, given: Mapping[str, Scalar], stream: Path | None = None, note: Note = lambda text: None
) -> DatasetSpec:
    """The dataset, which is made now if the cache does not have it; from ``stream`` if there is one. ``note`` gets
    sentences about the progress."""
    values = parameters(kind, given)
    before = getattr(kinds()[kind], "earlier", lambda values: None)(values)
    if before is not None:
        provide(kind, before, None, note)
    key = key_of(kind, values, stream)
    target = folder(key)
    with cached.locked(target.parent):
        if facts(target).get("version") != FORMAT_VERSION:
            after = folder(key_of(kind, before)) if before is not None else None
            _generate(kind, values, target, stream, after, note)
    made = facts(target)
    return DatasetSpec(
        kind=kind,
        key=key,
        zones=made["count"],
        records=made["records_total"],
        serial=made["serial"],
        parameters=values,
        signed_zones=made.get("signed_zones", 0) if are_own(kind) else 0,
        serials_differ=made.get("serials_differ", False),
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


def _generate(
    kind: str, values: dict[str, Scalar], folder: Path, stream: Path | None, before: Path | None, note: Note
) -> None:
    with cached.making(folder) as made:
        module = kinds()[kind]
        output = getattr(module, "output", lambda folder, values: ["--out", str(folder)])
        source = module.of_stream(stream) if stream is not None else []
        after = [f"--after={before}"] if before is not None else []
        arguments = ["generate", *module.arguments(values), *source, *after, *output(made, values)]
        listed = getattr(module, "listed", lambda values: ())
        failure = f"the dataset {kind} could not be generated"
        engine.watched(arguments, failure, text="".join(listed(values)), note=note)
        if finish := getattr(module, "finish", None):
            finish(made, FORMAT_VERSION)
