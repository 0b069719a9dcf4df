"""Folders as archives, sent in parts over any transport and verified by their hash."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dnsrig import cached
from dnsrig.errors import DnsrigError

PART_BYTES = 16 << 20
TAR_LIMIT_S = 1800


@dataclass(frozen=True)
class Archive:
    """A packed folder."""

    path: Path
    size_bytes: int
    sha256: str


def pack(folder: Path, archive: Path) -> Archive:
    """Pack ``folder`` with its owners, links and modes."""
    _tar("--create", "--gzip", f"--file={archive}", "--numeric-owner", f"--directory={folder}", ".")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Archive(archive, archive.stat().st_size, digest)


def parts(archive: Archive) -> Iterator[tuple[int, bytes]]:
    """The parts of an archive, each with its offset."""
    for offset in range(0, archive.size_bytes, PART_BYTES):
        yield offset, part(archive.path, offset)


def part(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(PART_BYTES)


def add(path: Path, offset: int, data: bytes) -> None:
    """Write a part that arrived. Parts arrive in order; a part may arrive twice."""
    with path.open("r+b" if offset else "wb") as file:
        file.seek(offset)
        file.write(data)
        file.truncate()


def unpack(archive: Archive, made: Path) -> None:
    """Unpack ``archive`` into the new folder ``made``. Raises DnsrigError if the archive is damaged."""
    with archive.path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != archive.sha256:
        raise DnsrigError("a folder arrived damaged", hint="go on with --resume")
    made.mkdir()
    _tar("--extract", "--gzip", f"--file={archive.path}", "--numeric-owner", f"--directory={made}")


def install(archive: Archive, target: Path) -> None:
    """Unpack ``archive`` as the folder ``target``, unless that exists."""
    with cached.locked(target.parent):
        if not target.exists():
            with cached.making(target) as made:
                unpack(archive, made)


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _tar(*words: str) -> None:
    result = subprocess.run(["tar", *words], capture_output=True, text=True, timeout=TAR_LIMIT_S, check=False)
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise DnsrigError(f"tar failed: {said[:200]}", hint="look whether the disk is full")
