"""Checksums of files: of the files of a trial, which readers compare with the files, and of inputs, which identify
them.

A file of a trial has a CRC-32 for each of its pieces, so that the intact beginning of a damaged file is known.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dnsrig import files
from dnsrig.rundir import FileRecord

LEAST_CHUNK_BYTES = 1 << 12
MOST_CHUNKS = 2048
"""Most pieces of a file: their checksums take at most 16 kB of trial.json."""
MOST_READ_BYTES = 1 << 20
_DIGITS = 8
"""Hexadecimal digits of a checksum."""
PATTERNS = ("*.arrow", "*.hlog", "*.folded")
"""Files that charts, metrics and traps read, beside trial.json."""


def of_trial(directory: Path) -> dict[str, FileRecord]:
    """File name -> size and checksums."""
    found = {}
    for name in names(directory):
        with files.opened(directory / name) as file:
            found[name] = of(file)
    return found


def names(directory: Path) -> list[str]:
    """Names of the files of a trial that charts, metrics and traps read."""
    return sorted(path.name for pattern in PATTERNS for path in directory.glob(pattern))


def of(file: BinaryIO) -> FileRecord:
    """Size and checksums of ``file``, in pieces as small as the number of checksums allows."""
    size, chunk = file.seek(0, os.SEEK_END), LEAST_CHUNK_BYTES
    while size > chunk * MOST_CHUNKS:
        chunk *= 2
    sums = "".join(found for _, found in _sums(file, chunk))
    return FileRecord(bytes=size, chunk_bytes=chunk, crc32=sums)


def _sums(file: BinaryIO, chunk: int) -> Iterator[tuple[int, str]]:
    """Length and checksum of each piece; a piece is not kept in memory, because anybody can have written its length."""
    file.seek(0)
    while True:
        value, length = 0, 0
        while part := file.read(min(MOST_READ_BYTES, chunk - length)):
            value, length = zlib.crc32(part, value), length + len(part)
        if not length:
            return
        yield length, f"{value:0{_DIGITS}x}"


def sha256(path: Path) -> str:
    """SHA-256 of the content of a file, in hexadecimal."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def whole_bytes(file: BinaryIO, recorded: FileRecord) -> int:
    """Number of bytes at the beginning of ``file`` that are the same as when the trial ended."""
    whole, sums = 0, recorded.crc32
    wanted = (sums[start : start + _DIGITS] for start in range(0, len(sums), _DIGITS))
    for (length, found), expected in zip(_sums(file, recorded.chunk_bytes), wanted, strict=False):
        if found != expected:
            break
        whole += length
    return min(whole, recorded.bytes)
