"""Streams: the queries of clients, one by one, for a replay. One plug-in a kind (`dnsrig.discovery`); the engine makes
a stream once, and the cache keeps it.

A kind is a module with ``DESCRIPTION``, ``DEFAULTS`` (parameter -> default, unit last in the name),
``arguments(parameters, dataset) -> list[str]``, the arguments of the engine without ``--out``; ``dataset`` is the
folder of the zones in the queries. It may have

- ``files(parameters) -> list[Path]`` (none by default): the files that the stream is made of, beside the dataset; the
  key of the stream depends on their content,
- ``RANGES`` (by default the ranges of `dnsrig.parameters`): parameter -> least and most that it may be,
- ``OF_DATASET`` (False by default): whether the stream is made from the dataset,
- ``validate(parameters)`` (nothing by default): raises ``UsageError``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dnsrig import cached, checksums, datasets, discovery, engine, paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.parameters import chosen
from dnsrig.rundir import Scalar, StreamSpec

FORMAT_VERSION = 2
"""Raised when the engine makes another stream from the same parameters: older streams are then made again."""
STREAM_FILE, FACTS_FILE = "clients.stream", "stream.json"


@cache
def kinds() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("DESCRIPTION", "DEFAULTS", "arguments"))


def wanted(document: Mapping[str, Scalar]) -> tuple[str, dict[str, Scalar]]:
    """The kind and all parameters of the stream that an experiment describes. Raises UsageError on bad input."""
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in kinds():
        raise UsageError(f"stream.kind = {kind!r}", hint=f"one of {', '.join(kinds())}")
    module, given = kinds()[kind], {name: value for name, value in document.items() if name != "kind"}
    values = chosen("stream", f"stream {kind} has no", module.DEFAULTS, given, getattr(module, "RANGES", {}))
    if validate := getattr(kinds()[kind], "validate", None):
        validate(values)
    for file in _files(kind, values):
        if not file.is_file():
            raise UsageError(f"stream.file: there is no file {file}", hint="it is looked for from the current folder")
    return kind, values


def is_of_dataset(kind: str) -> bool:
    """Whether the stream is made from the experiment's dataset, and after it."""
    return bool(getattr(kinds()[kind], "OF_DATASET", False))


def key_of(kind: str, values: Mapping[str, Scalar], dataset: str) -> str:
    """The key of a stream. It depends on the content of its files, not on their paths. ``dataset``: key of the
    dataset."""
    files = _files(kind, values)
    told = {name: value for name, value in values.items() if not files or name != "file"}
    of_dataset = dataset if is_of_dataset(kind) else ""
    text = json.dumps(
        [FORMAT_VERSION, kind, sorted(told.items()), [checksums.sha256(file) for file in files], of_dataset]
    )
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def folder(key: str) -> Path:
    """Folder of the stream with this key, which may not exist yet."""
    return paths.cache() / "streams" / key


def file(key: str) -> Path:
    return folder(key) / STREAM_FILE


def facts(key: str) -> dict[str, Any]:
    """The engine's report about making the stream (``made``) and its content (``holds``); empty: it is not made yet."""
    try:
        return json.loads((folder(key) / FACTS_FILE).read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def provide(kind: str, values: Mapping[str, Scalar], dataset: str) -> StreamSpec:
    """The stream, which is made now if the cache does not have it. ``dataset``: key of the dataset, if it exists."""
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
        failure = f"the stream {kind} could not be made"
        report = engine.summary([*kinds()[kind].arguments(values, dataset), f"--out={stream}"], failure)
        holds = engine.summary(["replay", "describe", str(stream)], failure)
        if not holds["stream"]["queries"]:
            raise DnsrigError(f"the stream {kind} holds no query", hint="`dnsrig replay prepare` says what it left out")
        (made / FACTS_FILE).write_text(json.dumps({"made": report, "holds": holds}))


def _files(kind: str, values: Mapping[str, Scalar]) -> list[Path]:
    files = getattr(kinds()[kind], "files", None)
    return [path.expanduser() for path in files(values)] if files else []
