"""Brings folders from one machine to another: packed, in parts, and checked by their hash on arrival.

What runs on the other machine is called by a `Call`, the way to which the transport has: an SSH connection or Dask.
Paths there are in its cache, unless they begin with /.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from dnsrig import cached, paths
from dnsrig.errors import DnsrigError

PART_BYTES = 16 << 20
TAR_LIMIT_S = 1800
Call = Callable[..., Any]
"""Calls a function of dnsrig on another machine: takes the function and its arguments, returns what it returns."""
Data = Annotated[bytes, BeforeValidator(lambda data: base64.urlsafe_b64decode(data) if isinstance(data, str) else data)]
"""Bytes, which JSON has in base64."""


@dataclass(frozen=True)
class Archive:
    """A packed folder."""

    path: Path
    size_bytes: int
    sha256: str


def send(call: Call, folder: Path, target: str, arriving: str) -> None:
    """Bring ``folder`` to another machine, where it becomes ``target``. Until it is complete, its parts are in the
    folder ``arriving`` there."""
    with tempfile.TemporaryDirectory() as place:
        packed = pack(folder, Path(place, "archive"))
        name = f"{arriving}/{hashlib.sha256(target.encode()).hexdigest()}"
        for offset in range(0, packed.size_bytes, PART_BYTES):
            call(receive, name, offset, part(str(packed.path), offset))
        call(install, name, packed.size_bytes, packed.sha256, target)


@contextlib.contextmanager
def fetched(call: Call, archive: Archive, place: Path) -> Iterator[Path]:
    """Bring an archive of another machine here; yields its content, as a folder in ``place``."""
    with tempfile.TemporaryDirectory(dir=place, prefix=".arriving-") as folder:
        path, made = Path(folder, "archive"), Path(folder, "made")
        for offset in range(0, archive.size_bytes, PART_BYTES):
            add(path, offset, call(part, str(archive.path), offset))
        unpack(Archive(path, archive.size_bytes, archive.sha256), made)
        yield made


def lacking(folders: list[str]) -> list[str]:
    """Return those folders of the cache that this machine does not have."""
    return [folder for folder in folders if not (paths.cache() / folder).exists()]


def receive(path: str, offset: int, data: Data) -> None:
    """Take a part of an archive that another machine sends."""
    arriving = paths.cache() / path
    arriving.parent.mkdir(parents=True, exist_ok=True)
    add(arriving, offset, data)


def install(path: str, size_bytes: int, sha256: str, target: str) -> None:
    """Turn an archive that has arrived into the folder ``target``, unless that is there."""
    archive, folder = Archive(paths.cache() / path, size_bytes, sha256), paths.cache() / target
    try:
        with cached.locked(folder.parent):
            if not folder.exists():
                with cached.making(folder) as made:
                    unpack(archive, made)
    finally:
        archive.path.unlink(missing_ok=True)


def part(path: str, offset: int) -> Data:
    """Read a part of an archive that another machine fetches."""
    with Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(PART_BYTES)


def pack(folder: Path, archive: Path) -> Archive:
    """Pack ``folder`` with its owners, links and modes."""
    _tar("--create", "--gzip", f"--file={archive}", "--numeric-owner", f"--directory={folder}", ".")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Archive(archive, archive.stat().st_size, digest)


def add(path: Path, offset: int, data: bytes) -> None:
    """Write a part that arrived. Parts arrive in order; the last one may arrive again."""
    with path.open("r+b" if offset else "wb") as file:
        file.seek(offset)
        file.write(data)
        file.truncate()


def unpack(archive: Archive, made: Path) -> None:
    """Unpack into ``made``, which does not exist yet. Raises DnsrigError if the archive is not what was packed."""
    with archive.path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != archive.sha256:
        raise DnsrigError("a folder arrived damaged", hint="go on with --resume")
    made.mkdir()
    _tar("--extract", "--gzip", f"--file={archive.path}", "--numeric-owner", f"--directory={made}")


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _tar(*words: str) -> None:
    result = subprocess.run(["tar", *words], capture_output=True, text=True, timeout=TAR_LIMIT_S, check=False)
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise DnsrigError(f"tar failed: {said[:200]}", hint="look whether the disk is full")
