"""Queries of your own: the section ``[queries]`` of an experiment.

The file of queries and the list of subnets are copied into the cache, under a hash of their content, so that trials and
other machines read the same. The engine reads them once before anything is started, counts the queries, and names what
it cannot read. A capture becomes a stream first (`dnsrig replay prepare`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dnsrig import cached, checksums, engine, paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import QueriesSpec, Settings

VERSION = 1
"""Raised when the engine reads a file in another way: what it counted is then counted again."""
FILE, SUBNETS, EXPECTED, FACTS = "queries", "subnets", "expected", "queries.json"
NOERROR_NONEMPTY = "noerror-nonempty"
"""The value of ``expect`` that is no file."""
PATHS = ("file", "client_subnet", "expect")
"""Keys that may name a file."""
EDNS = ("do_share", "client_subnet", "cookie", "nsid", "padding", "edns_options")
"""Keys that need EDNS."""
MOST_BYTES = 16 << 30
"""Largest file of queries: many times the size of the largest number of queries that the engine prepares."""
Note = Callable[[str], None]


class QueriesDocument(Settings):
    """An experiment's own queries, under ``[queries]``."""

    file: str = Field(
        "",
        description="file with the queries, looked for beside the experiment file, then in the current folder: a name and a type per "
        "line (dnsperf, kxdpgun), queries in wire format, or a capture; absent: names of the dataset",
    )
    format: Literal["auto", "text", "binary", "capture"] = Field(
        "auto", description="format of the file; by default it is recognised by the first bytes"
    )
    types: list[str] = Field(
        default_factory=list,
        max_length=64,
        description='types to ask for if the lines of the file are names alone, e.g. `["A", "AAAA"]`',
    )
    on_bad_line: Literal["error", "skip"] = Field(
        "error", description="what to do about a line that cannot be read: `error`, or `skip`, count and report it"
    )
    shuffle: bool = Field(
        False, description="whether the queries are shuffled; by default the order of the file is kept"
    )
    seed: int = Field(1, ge=1, le=1_000_000, description="seed of the order and of what is drawn for EDNS")
    passes: int = Field(
        0,
        ge=0,
        le=1_000_000_000,
        description="how often the file is asked at most; the load then ends before `duration_s`. 0: as often as there is time",
    )
    popularity: str = Field(
        "",
        pattern=r"^(|uniform|zipf(:[0-9.]{1,9})?)$",
        description="draw the queries from the file: `uniform`, `zipf` or `zipf:S`, as for the names of a dataset; by default the "
        "order of the file is kept",
    )
    expect: str = Field(
        "",
        description="what each answer must be: `noerror-nonempty`, or a file with a name, a type, and an rcode, NODATA or the data "
        "of a record per line; a wrong answer counts like none",
    )
    do_share: float = Field(0.0, ge=0, le=1, description="share of the queries that ask for DNSSEC records (DO)")
    client_subnet: str = Field(
        "",
        description="subnets of clients to name in EDNS (RFC 7871): prefixes with commas between them, or a file with one per line; "
        "each query has one, drawn at random",
    )
    cookie: bool = Field(False, description="send a cookie (RFC 7873), which each client keeps")
    nsid: bool = Field(False, description="ask for the name of the server that answers (NSID, RFC 5001)")
    padding: bool = Field(False, description="pad queries to a multiple of 128 bytes (RFC 8467)")
    edns_options: list[str] = Field(
        default_factory=list, max_length=16, description='more EDNS options, each `CODE:HEX`, e.g. `["65001:c0ffee"]`'
    )


def anchored(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """``raw``, the TOML of an experiment in ``folder``, with paths of files that are there."""

    def path(value: Any) -> Any:
        beside = folder / value if isinstance(value, str) and value else None
        return str(beside) if beside is not None and beside.is_file() else value

    def table(values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {key: path(value) if key in PATHS else value for key, value in values.items()}

    def axis(name: str, values: Any) -> Any:
        if name.removeprefix("queries.") in PATHS and name.startswith("queries.") and isinstance(values, list):
            return [path(value) for value in values]
        if isinstance(values, dict):
            return {label: _with_table(overlay, table) for label, overlay in values.items()}
        return values

    found: dict[str, Any] = _with_table(raw, table)
    if isinstance(matrix := found.get("matrix"), dict):
        found["matrix"] = {name: axis(name, values) for name, values in matrix.items()}
    return found


def _with_table(raw: Any, change: Callable[[Any], Any]) -> Any:
    return {**raw, "queries": change(raw["queries"])} if isinstance(raw, dict) and "queries" in raw else raw


def wanted(document: QueriesDocument) -> QueriesSpec:
    """The spec of ``document`` without what only the engine finds out. Raises UsageError on bad input."""
    file = Path(document.file).expanduser() if document.file else None
    if document.expect not in ("", NOERROR_NONEMPTY):
        _check_file("expect", Path(document.expect).expanduser())
    if file is not None:
        _check_file("file", file)
    elif document.types or document.shuffle or document.passes or document.popularity:
        raise UsageError(
            "queries.file is missing, and types, shuffle, passes and popularity are settings of a file",
            hint='name the file, e.g. file = "queries.txt"',
        )
    if document.popularity and document.shuffle:
        raise UsageError(
            "queries.shuffle: with queries.popularity the queries are drawn, so there is no order to shuffle",
            hint="leave one of them out",
        )
    parameters = document.model_dump(exclude={"file", "types", "edns_options"})
    listed = {"types": ",".join(document.types), "edns_options": ",".join(document.edns_options)}
    return QueriesSpec(name=file.name if file is not None else "", parameters={**parameters, **listed})


def _check_file(key: str, file: Path) -> None:
    if file.is_dir():
        raise UsageError(f"queries.{key}: {file} is a folder", hint="name one file")
    if not file.is_file():
        raise UsageError(
            f"queries.{key}: there is no file {file}",
            hint="it is looked for beside the experiment file, then in the current folder",
        )
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        raise UsageError(f"queries.{key}: {file} cannot be read: {error.strerror}", hint="look at its owner") from error
    if not 0 < size <= MOST_BYTES:
        raise UsageError(
            f"queries.{key}: {file} is {'empty' if not size else f'larger than {MOST_BYTES >> 30} GiB'}",
            hint="a line per query, which begins with a name and a type, such as `www.example A`",
        )


def folder(key: str) -> Path:
    """Folder of the queries with this key, which may not exist yet."""
    return paths.cache() / "queries" / key


def facts(key: str) -> dict[str, Any]:
    """What the engine counted; empty: the queries are not in the cache."""
    try:
        return json.loads((folder(key) / FACTS).read_text())  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


def provide(document: QueriesDocument, note: Note) -> QueriesSpec:
    """The queries in the cache, where they are put now if they are not there. Raises UsageError on a file that cannot
    be used."""
    spec = wanted(document)
    sources = {FILE: Path(document.file).expanduser()} if document.file else {}
    if document.client_subnet and Path(document.client_subnet).is_file():
        sources[SUBNETS] = Path(document.client_subnet)
    if document.expect not in ("", NOERROR_NONEMPTY):
        sources[EXPECTED] = Path(document.expect).expanduser()
    hashes = {name: checksums.sha256(path) for name, path in sources.items()}
    read = {name: spec.parameters[name] for name in ("format", "types", "on_bad_line", "client_subnet", "edns_options")}
    read |= {"client_subnet": ""} if SUBNETS in sources else {}
    text = json.dumps([VERSION, sorted(hashes.items()), sorted(read.items())])
    key = f"queries-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    with cached.locked(folder(key).parent):
        if not facts(key):
            if document.file:
                note(f"reading the queries in {document.file}, once")
            _make(key, spec, sources, hashes)
    found = facts(key)
    parameters = {
        **spec.parameters,
        "client_subnet": hashes.get(SUBNETS, document.client_subnet),
        "expect": hashes.get(EXPECTED, document.expect),
    }
    if found["skipped"]:
        note(f"{document.file}: {found['skipped']:,} bad lines are left out: {'; '.join(found['first_skipped'])}")
    return spec.model_copy(
        update={
            "key": key,
            "sha256": hashes.get(FILE, ""),
            "format": found["format"] or "",
            "queries": found["queries"],
            "types": found["types"],
            "skipped": found["skipped"],
            "parameters": parameters,
        }
    )


def _make(key: str, spec: QueriesSpec, sources: dict[str, Path], hashes: dict[str, str]) -> None:
    """Fill the folder of the cache. The facts are written last."""
    failure = f"the queries of {spec.name or 'the experiment'} cannot be used"
    with cached.making(folder(key)) as made:
        made.mkdir()
        for name, source in sources.items():
            shutil.copyfile(source, made / name)
            if checksums.sha256(made / name) != hashes[name]:
                raise DnsrigError(f"{source} changed while it was read", hint="start again when nothing writes to it")
        if FILE not in sources:
            (made / FILE).write_text(". NS\n")  # the engine checks the settings of EDNS with any query
        format_ = str(spec.parameters["format"])
        found: dict[str, Any] = {"capture": ""} if format_ == "capture" else _described(spec, made, failure, format_)
        if "capture" in found:
            _to_stream(made, failure)
            found = {**_described(spec, made, failure, "stream"), "format": "capture"}
        if FILE not in sources:
            (made / FILE).unlink()
            found |= {"format": "", "queries": 0, "types": {}}
        (made / FACTS).write_text(json.dumps(found))


def _to_stream(made: Path, failure: str) -> None:
    """Make a stream of the capture in the folder ``made``, in its place."""
    capture = (made / FILE).rename(made / "capture")
    engine.summary(["replay", "prepare", str(capture), f"--out={made / FILE}"], failure)
    capture.unlink()


def _described(spec: QueriesSpec, made: Path, failure: str, format_: str) -> dict[str, Any]:
    named = "" if format_ == "auto" else format_
    words = ["load", "127.0.0.1", "--dry-run", "--json", *_of_file(spec, made, named), *_edns(spec, made)]
    # Names of a dataset are not known here.
    words += _expected(spec, made) if spec.name else []
    try:
        return engine.summary(words, failure)
    except DnsrigError as error:
        text = str(error).replace(str(made / FILE), spec.name).replace(str(made / EXPECTED), "queries.expect")
        raise UsageError(text, hint=error.hint) from error


def arguments(spec: QueriesSpec) -> list[str]:
    """Arguments of `load` for the queries, except for the number of passes and the seed: of the file, if there is one,
    of EDNS, and of what answers must be."""
    words = [*_edns(spec, folder(spec.key)), *_expected(spec, folder(spec.key))]
    if not spec.name:
        return words
    words += _of_file(spec, folder(spec.key), "stream" if spec.format == "capture" else spec.format)
    words += ["--shuffle"] if spec.parameters["shuffle"] else []
    return [*words, f"--popularity={popularity}"] if (popularity := spec.parameters["popularity"]) else words


def _of_file(spec: QueriesSpec, folder: Path, format_: str) -> list[str]:
    return [
        f"--queries={folder / FILE}",
        *([f"--query-format={format_}"] if format_ else []),
        *([f"--types={types}"] if (types := spec.parameters["types"]) else []),
        *(["--skip-bad-lines"] if spec.parameters["on_bad_line"] == "skip" else []),
    ]


def _expected(spec: QueriesSpec, folder: Path) -> list[str]:
    own = (folder / EXPECTED).exists()
    expected = str(folder / EXPECTED) if own else spec.parameters.get("expect")
    return [f"--expect={expected}"] if expected else []


def _edns(spec: QueriesSpec, folder: Path) -> list[str]:
    given = spec.parameters
    own = (folder / SUBNETS).exists()
    subnet = str(folder / SUBNETS) if own else given["client_subnet"]
    words = [f"--do-share={given['do_share']}"] if given["do_share"] else []
    words += [f"--client-subnet={subnet}"] if subnet else []
    words += [f"--{name}" for name in ("cookie", "nsid", "padding") if given[name]]
    return [*words, *(f"--edns-option={option}" for option in str(given["edns_options"]).split(",") if option)]
