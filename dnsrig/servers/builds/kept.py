"""The folder of all builds, limited to a number of bytes: the longest unused build is removed first."""

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
"""Written last: its presence means that the build is complete. Its modification time is the last use of the build."""
LOG = "build.log"
IN_USE_S = 3600
"""Time after its last use in which a trial may still run with a build."""
MOST_FAILED_LOGS = 50


class BuildRecord(BaseModel):
    """The description of a build."""

    model_config = ConfigDict(frozen=True)

    kind: str
    source: str
    """The source as it was first requested: ``git:REF WORD…``."""
    commit: str
    version: str
    """The version that the program prints; with the commit if this is not the release of that number."""
    fingerprint: str
    """Hash of the program."""
    suite: str
    root: str
    """Key of the root file system in which it was made and runs."""
    packages: dict[str, str]
    """Packages of that root -> exact version."""
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
    """The description of a build; None if there is no such build, or it is from another version of dnsrig."""
    try:
        return BuildRecord.model_validate_json((folder() / key / RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


def keys(kind: str) -> list[str]:
    """Keys of the builds of one kind of server, the longest unused first."""
    found = [path.parent for path in folder().glob(f"{kind}-*/{RECORD}") if path.parent.name.rpartition("-")[0] == kind]
    return [path.name for path in sorted(found, key=_used)]


def use(key: str) -> None:
    """Note that a build is used now, if the cache is writable."""
    with contextlib.suppress(OSError):
        os.utime(folder() / key / RECORD)


def limit_bytes() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "")
    if text and not re.fullmatch(r"\d{1,6}(\.\d+)?", text):
        raise UsageError(f"{LIMIT_VARIABLE}={text} is not a number", hint="gigabytes for all builds, e.g. 20")
    return int(float(text or DEFAULT_LIMIT_GB) * 1e9)


def make_room(newest: str) -> list[str]:
    """Remove builds until the rest is below the limit, but neither ``newest`` nor a build that may be in use. Return
    the keys of removed builds. Needs the lock of the folder."""
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
    """Size of all files below ``tree``; a link counts as a link."""
    return sum(path.lstat().st_size for path in tree.rglob("*"))


def _used(build: Path) -> float:
    return (build / RECORD).stat().st_mtime
