"""Zones of your own, from master files (docs/how-to/own-zones.md).

``files`` has patterns of the shell, ``list`` is a table with the name and the file of each zone, and ``next`` has the
later versions of the same zones, each a pattern, a list of patterns, or a table. `datasets.anchored` makes one text of
a list, with a pattern on each line and an empty line between versions.

``version`` is the version that the dataset has, 0 for ``files`` itself. Without ``next``, dnsrig makes version n: it
adds n to the serials, and to the TTLs of ``changed_share`` of the RRsets.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from dnsrig.errors import UsageError
from dnsrig.rundir import Scalar

DESCRIPTION = "zones of your own: master files, each with one zone"
BYTES_PER_RECORD = 50
"""Average size of a record in a master file, for an estimate of the time."""
DEFAULTS: dict[str, Scalar] = {
    "files": "",
    "list": "",
    "next": "",
    "version": 0,
    "changed_share": 0.01,
    "unsigned_changes": False,
    "include_below": "",
    "catalog_schema": 2,
}
RANGES = {"catalog_schema": (1, 2), "version": (0, 100)}
PLACES = {"files": "patterns", "list": "path", "next": "versions", "include_below": "path"}
ZONES_MOST = 10_000_000
"""Most zones of a dataset, as for other kinds."""
HEADER = ("name", "file")


INCLUDE = re.compile(rb'^\$include[ \t]+(?:"((?:[^"\\\n]|\\.)+)"|((?:[^\s";()\\]|\\.)+))', re.IGNORECASE | re.MULTILINE)
ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
"""An escape in the name of a file. The engine refuses numbers there."""
READ_BYTES = 1 << 20
LINE_BYTES = 4096
"""Longest line of an $INCLUDE that counts for the key."""
DEPTH_MOST = 8
"""Most files within each other, as in the engine."""


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    words = ["files", "--list=/dev/stdin", f"--catalog-schema={parameters['catalog_schema']}"]
    if parameters["include_below"]:
        words.append(f"--include-below={parameters['include_below']}")
    if _is_made(parameters):
        words += [f"--steps={parameters['version']}", f"--changed-share={parameters['changed_share']}"]
        words += ["--unsigned-changes"] if parameters["unsigned_changes"] else []
    return words


def listed(parameters: Mapping[str, Scalar]) -> Iterator[str]:
    """A line for each zone, as `generate files --list` reads it: the path of its file, or its name, a tab, the path."""
    for name, path in _zones(parameters):
        yield f"{name}\t{path}\n" if name else f"{path}\n"


def identity(parameters: Mapping[str, Scalar]) -> list[Scalar]:
    """What the dataset depends on: the names and the contents of its files and of those before, wherever these are."""
    version = int(parameters["version"])
    below = str(parameters["include_below"])
    found: list[Scalar] = [int(parameters["catalog_schema"]), _digest(_zones({**parameters, "version": 0}), below)]
    if _is_made(parameters):
        return [*found, version, float(parameters["changed_share"]), bool(parameters["unsigned_changes"])]
    later = (_zones({**parameters, "version": number}) for number in range(1, version + 1))
    return [*found, *(_digest(zones, below) for zones in later)]


def earlier(parameters: Mapping[str, Scalar]) -> dict[str, Scalar] | None:
    """The parameters of the version before one that the user brings. Its zones have the same numbers."""
    version = int(parameters["version"])
    return None if version == 0 or _is_made(parameters) else {**parameters, "version": version - 1}


def following(parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters of the next version."""
    version, own = int(parameters["version"]) + 1, later_versions(parameters)
    if own and version > own:
        raise UsageError(
            f"the procedure needs version {version} of the zones, and dataset.next has {own}",
            hint="add later versions to dataset.next",
        )
    return {**parameters, "version": version}


def later_versions(parameters: Mapping[str, Scalar]) -> int:
    """Number of later versions that the user brings."""
    return len(_versions(parameters))


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    return _size(*(str(parameters[name]) for name in ("files", "list", "next")), int(parameters["version"]))


@lru_cache(maxsize=16)
def _size(files: str, table: str, following: str, version: int) -> tuple[int, int]:
    """Looked at once: each variant asks for it, and it is only for an estimate."""
    found = _zones({"files": files, "list": table, "next": following, "version": version})
    return len(found), sum(Path(path).stat().st_size for _, path in found) // BYTES_PER_RECORD


def _versions(parameters: Mapping[str, Scalar]) -> list[list[str]]:
    versions = str(parameters["next"]).split("\n\n")
    return [version.split("\n") for version in versions if version.strip()]


def _is_made(parameters: Mapping[str, Scalar]) -> bool:
    """Whether dnsrig makes the version from the first one."""
    return int(parameters["version"]) > 0 and not _versions(parameters)


def _zones(parameters: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """(name, path) of each zone of the version; the name is empty if the file itself decides. Of a version that dnsrig
    makes, those of the first one.

    Raises UsageError if a pattern matches no file, or if the list cannot be read.
    """
    patterns, table = str(parameters["files"]).split("\n"), str(parameters["list"])
    if any(patterns) and table:
        raise UsageError("dataset.files and dataset.list are both given", hint="leave one of them out")
    if not any(patterns) and not table:
        raise UsageError(
            "dataset.files is missing", hint='name the zone files, e.g. files = "zones/*.zone", or list = "zones.csv"'
        )
    version, own = int(parameters["version"]), _versions(parameters)
    if version and own:
        if version > len(own):
            raise UsageError(
                f"dataset.version = {version}, but dataset.next has {len(own)} versions", hint="add a version to next"
            )
        table, patterns = "", own[version - 1]
        if len(patterns) == 1 and patterns[0].endswith(".csv"):
            table = _matching(patterns)[0]
    found = _of_table(Path(table)) if table else [("", path) for path in _matching(patterns)]
    if len(found) > ZONES_MOST:
        raise UsageError(f"the dataset has {len(found):,} zones, more than {ZONES_MOST:,}", hint="name fewer files")
    return found


_DIGESTS: dict[bytes, str] = {}
"""State of files without $INCLUDE -> digest of their contents, so that variants do not read the same files again."""


def _digest(zones: Iterable[tuple[str, str]], below: str) -> str:
    """SHA-256 of the names and the contents of zones, with those of included files."""
    zones, state = list(zones), hashlib.sha256()
    for name, path in zones:
        now = Path(path).stat()
        state.update(f"{name}\0{path}\0{now.st_ino} {now.st_size} {now.st_mtime_ns} {now.st_ctime_ns}\0".encode())
    if (known := _DIGESTS.get(state.digest())) is not None:
        return known
    found, includes = hashlib.sha256(), False
    for name, path in zones:
        content, some = _content(path, below, 0, set())
        includes |= some
        found.update(f"{name or Path(path).name}\0".encode() + content)
    if not includes:
        _DIGESTS[state.digest()] = found.hexdigest()
    return found.hexdigest()


def _content(path: str, below: str, depth: int, seen: set[Path]) -> tuple[bytes, bool]:
    """Digest of a file and of the files below ``below`` that it may include, and whether there are some. ``seen``:
    files that were read already. Each is read once, however often files include each other."""
    found, included, rest = hashlib.sha256(), [], b""
    with Path(path).open("rb") as file:
        while part := file.read(READ_BYTES):
            found.update(part)
            text = rest + part
            if b"$" in text:
                included += [ESCAPE.sub(rb"\1", match[1] or match[2]) for match in INCLUDE.finditer(text)]
            rest = text[text.rfind(b"\n") + 1 :][:LINE_BYTES]
    for name in dict.fromkeys(included):
        place = (Path(path).parent / os.fsdecode(name)).resolve()
        # The engine refuses others, and names the line.
        if below and depth < DEPTH_MOST and place.is_relative_to(Path(below).resolve()) and place.is_file():
            if place in seen:
                found.update(os.fsencode(place))
            else:
                seen.add(place)
                found.update(_content(str(place), below, depth + 1, seen)[0])
    return found.digest(), bool(included)


def _matching(patterns: Iterable[str]) -> list[str]:
    found: set[str] = set()
    for pattern in filter(None, patterns):
        anchored = Path(pattern).absolute()
        below = str(anchored.relative_to(anchored.anchor))
        matching = (
            {str(path) for path in Path(anchored.anchor).glob(below) if path.is_file()} if below != "." else set()
        )
        if not matching:
            raise UsageError(
                f"dataset.files: no file matches {pattern}",
                hint="patterns in an experiment begin at its folder, patterns of --set at the current folder",
            )
        found |= matching
    return sorted(found)


def _of_table(path: Path) -> list[tuple[str, str]]:
    """The zones in a table of comma-separated values. Files are relative to its folder.

    Without a header, the columns are the name and the file. Raises UsageError on a bad line.
    """
    found: dict[str, str] = {}
    columns, headed = [0, 1], False
    try:
        with path.open(newline="", encoding="utf-8-sig") as text:
            for number, row in enumerate(csv.reader(text, strict=True), start=1):
                cells = [cell.strip() for cell in row]
                if number == 1 and (words := [cell.lower() for cell in cells]) and set(HEADER) <= set(words):
                    columns, headed = [words.index(title) for title in HEADER], True
                elif any(cells) and not cells[0].startswith("#"):
                    name, file = _entry(path, number, cells, columns, headed=headed)
                    if name in found:
                        raise UsageError(
                            f"{path}: line {number}: the zone {name} is listed twice", hint="list each zone once"
                        )
                    found[name] = file
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"dataset.list: {path} cannot be read: {error}", hint="a name, a comma and a file on each line"
        ) from error
    if not found:
        raise UsageError(f"dataset.list: {path} lists no zone", hint="write a name, a comma and a file on each line")
    return list(found.items())


def _entry(path: Path, number: int, cells: list[str], columns: list[int], *, headed: bool) -> tuple[str, str]:
    """(name, path of the file) in a line of a table. ``headed``: whether the table has a header, and so may have more
    columns."""
    name, file = (cells[column] if column < len(cells) else "" for column in columns)
    if not name or not file or (not headed and any(cells[2:])):
        raise UsageError(
            f"{path}: line {number}: a name and a file are expected, not {','.join(cells)!r:.100}",
            hint="e.g. example.org,zones/example.org.zone; with more columns, a first line name,file,…",
        )
    file = str(path.parent.absolute() / file)
    if any(character in name + file for character in "\t\n"):
        raise UsageError(f"{path}: line {number}: a tab or a line end in a name", hint="rename the file")
    if not Path(file).is_file():
        raise UsageError(f"{path}: line {number}: there is no file {file}", hint="files are relative to the list")
    return name.lower().rstrip(".") or ".", file
