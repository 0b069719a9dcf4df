"""Streams: what clients ask, query by query, and what is replayed. One plug-in a kind (`dnsrig.discovery`); made by the
engine, once, and kept in the cache.

A kind is a module with ``DESCRIPTION``, ``DEFAULTS`` (parameter -> default, unit last in the name),
``arguments(parameters, dataset) -> list[str]``, the arguments of the engine but for ``--out``; ``dataset`` is the
folder of the zones that are asked for. It may have

- ``files(parameters) -> list[Path]`` (none by default): what the stream is made of beside the dataset; a stream is
  keyed by what they contain,
- ``RANGES`` (by default the ranges of `dnsrig.ranges`): parameter -> least and most that it may be,
- ``OF_DATASET`` (False by default): whether the stream is another one for another dataset,
- ``check(parameters)`` (nothing by default): raises ``UsageError``.
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

from dnsrig import cached, checksums, datasets, discovery, paths, ranges
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import Scalar, StreamSpec

FORMAT_VERSION = 2
"""Raised when the engine makes another stream of the same parameters: older ones are then made anew."""
STREAM_FILE, FACTS_FILE = "clients.stream", "stream.json"


@cache
def kinds() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("DESCRIPTION", "DEFAULTS", "arguments"))


def wanted(document: Mapping[str, Scalar]) -> tuple[str, dict[str, Scalar]]:
    """The kind and all parameters of what an experiment says under ``[stream]``. Raises on bad input."""
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in kinds():
        raise UsageError(f"stream.kind = {kind!r}", hint=f"one of {', '.join(kinds())}")
    chosen = {name: value for name, value in document.items() if name != "kind"}
    values = {**kinds()[kind].DEFAULTS, **_typed(kind, kinds()[kind].DEFAULTS, chosen)}
    if check := getattr(kinds()[kind], "check", None):
        check(values)
    for file in _files(kind, values):
        if not file.is_file():
            raise UsageError(f"stream.file: there is no file {file}", hint="it is looked for from the current folder")
    return kind, values


def _typed(kind: str, defaults: Mapping[str, Scalar], chosen: Mapping[str, Scalar]) -> dict[str, Scalar]:
    found = {}
    for name, value in chosen.items():
        if name not in defaults:
            raise UsageError(f"stream {kind} has no {name!r}", hint=f"it has: {', '.join(defaults)}")
        wanted_type = type(defaults[name])
        found[name] = float(value) if wanted_type is float and type(value) is int else value
        if type(found[name]) is not wanted_type:
            raise UsageError(
                f"stream.{name} = {value!r} is of the wrong type", hint=f"its default is {defaults[name]!r}"
            )
        ranges.check("stream", name, found[name], getattr(kinds()[kind], "RANGES", {}))
    return found


def is_of_dataset(kind: str) -> bool:
    """Whether the stream is made of the experiment's dataset, and after it."""
    return bool(getattr(kinds()[kind], "OF_DATASET", False))


def key_of(kind: str, values: Mapping[str, Scalar], dataset: str) -> str:
    """By what the files contain, wherever they lie; ``dataset``: its key."""
    files = _files(kind, values)
    told = {name: value for name, value in values.items() if not files or name != "file"}
    of_dataset = dataset if is_of_dataset(kind) else ""
    text = json.dumps(
        [FORMAT_VERSION, kind, sorted(told.items()), [checksums.sha256(file) for file in files], of_dataset]
    )
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def folder(key: str) -> Path:
    """Where the stream with that key lies, or would."""
    return paths.cache() / "streams" / key


def file(key: str) -> Path:
    return folder(key) / STREAM_FILE


def facts(key: str) -> dict[str, Any]:
    """What the engine said when it made the stream (``made``), and what the stream holds (``holds``); empty without."""
    try:
        return json.loads((folder(key) / FACTS_FILE).read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def provide(kind: str, values: Mapping[str, Scalar], dataset: str) -> StreamSpec:
    """The stream, made now if it is not in the cache; ``dataset``: the key of the dataset, if that is made already."""
    key = key_of(kind, values, dataset)
    with cached.locked(folder(key).parent):
        if not facts(key):
            _make(kind, values, folder(key), datasets.folder(dataset))
    holds = facts(key)["holds"]
    return StreamSpec(
        kind=kind,
        key=key,
        queries=holds["stream"]["queries"],
        clients=holds["stream"]["clients"],
        span_s=holds["stream"]["duration_ns"] / 1e9,
        transports={name: count for name, count in holds["transports"].items() if count},
        parameters=dict(values),
    )


def _make(kind: str, values: Mapping[str, Scalar], target: Path, dataset: Path) -> None:
    with cached.making(target) as made:
        made.mkdir()
        stream = made / STREAM_FILE
        told = _run(kind, [*kinds()[kind].arguments(values, dataset), f"--out={stream}"])
        holds = _run(kind, ["replay", "describe", str(stream)])
        if not holds["stream"]["queries"]:
            raise DnsrigError(f"the stream {kind} holds no query", hint="`dnsrig replay prepare` says what it left out")
        (made / FACTS_FILE).write_text(json.dumps({"made": told, "holds": holds}))


def _run(kind: str, arguments: list[str]) -> dict[str, Any]:
    """The summary of the engine."""
    result = subprocess.run([str(paths.engine()), *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        detail = result.stderr.strip() or f"exit status {result.returncode}"
        raise DnsrigError(f"the stream {kind} could not be made: {detail}")
    return json.loads(result.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _files(kind: str, values: Mapping[str, Scalar]) -> list[Path]:
    files = getattr(kinds()[kind], "files", None)
    return [path.expanduser() for path in files(values)] if files else []
