"""The folder of all builds, and what of it is kept: at most so many bytes, the longest unused goes first."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dnsrig import paths
from dnsrig.errors import UsageError

LIMIT_VARIABLE = "DNSRIG_BUILDS_GB"
DEFAULT_LIMIT_GB = 10.0
RECORD = "dnsrig-build.json"
"""Written last: its presence means that the build is whole. Its time of change is when the build was used."""
LOG = "build.log"
IN_USE_S = 3600
"""A trial may still run with a build that was used less than so long ago."""
MOST_FAILED_LOGS = 50


class BuildRecord(BaseModel):
    """What a build is."""

    model_config = ConfigDict(frozen=True)

    kind: str
    source: str
    """As it was asked for first: ``git:REF WORD…``."""
    commit: str
    version: str
    """As the program says; with the commit where that is not the release of this number."""
    fingerprint: str
    """Of the program."""
    suite: str
    root: str
    """Key of the root file system that it was made in and runs in."""
    packages: dict[str, str]
    """Of that root -> exact version."""
    repository: str
    took_s: float
    size_bytes: int


def folder() -> Path:
    return paths.cache() / "builds"


def ccache() -> Path:
    return paths.cache() / "ccache"


def failed_log(key: str) -> Path:
    return folder() / "failed" / f"{key}.log"


def read(key: str) -> BuildRecord | None:
    """None: there is no such build, or it is of another version of dnsrig."""
    try:
        return BuildRecord.model_validate_json((folder() / key / RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


def keys(kind: str) -> list[str]:
    """Of the builds of one kind of server, the longest unused first."""
    found = [path.parent for path in folder().glob(f"{kind}-*/{RECORD}") if path.parent.name.rpartition("-")[0] == kind]
    return [path.name for path in sorted(found, key=_used)]


def use(key: str) -> None:
    """Note that it is used now, where the cache can be written to."""
    with contextlib.suppress(OSError):
        os.utime(folder() / key / RECORD)


def limit_bytes() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "")
    if text and not re.fullmatch(r"\d{1,6}(\.\d+)?", text):
        raise UsageError(f"{LIMIT_VARIABLE}={text} is not a number", hint="gigabytes for all builds, e.g. 20")
    return int(float(text or DEFAULT_LIMIT_GB) * 1e9)


def make_room(newest: str) -> list[str]:
    """Remove builds until the rest is below the limit, but neither ``newest`` nor one that may be in use; the keys that
    went. Needs the folder's lock."""
    logs = sorted((folder() / "failed").glob("*.log"), key=lambda path: path.stat().st_mtime)
    for log in logs[:-MOST_FAILED_LOGS]:
        log.unlink()
    builds = sorted((path.parent for path in folder().glob(f"*/{RECORD}")), key=_used)
    sizes = {path.name: record.size_bytes for path in builds if (record := read(path.name)) is not None}
    left, removed = sum(sizes.values()), []
    for path in builds:
        if left <= limit_bytes() or time.time() - _used(path) < IN_USE_S:
            break
        if path.name != newest:
            left -= sizes.get(path.name, 0)
            (path / RECORD).unlink()
            shutil.rmtree(path)
            removed.append(path.name)
    return removed


def size_bytes(tree: Path) -> int:
    """Of all files below ``tree``, each link counted as such."""
    return sum(path.lstat().st_size for path in tree.rglob("*"))


def _used(build: Path) -> float:
    return (build / RECORD).stat().st_mtime
