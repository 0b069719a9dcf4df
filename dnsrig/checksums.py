"""Checksums of files: those of a trial, taken when it ends and held against the files when they are read, and those by
which inputs are known.

A file of a trial has a CRC-32 for each piece of it, so that of a damaged file the beginning that is whole is known.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

from dnsrig.rundir import FileRecord

LEAST_CHUNK_BYTES = 1 << 12
MOST_CHUNKS = 2048
"""Of a file: its checksums take at most 16 kB of trial.json."""
_DIGITS = 8
"""Of a checksum in hexadecimal."""
PATTERNS = ("*.arrow", "*.hlog", "*.folded")
"""What charts, metrics and traps read, beside trial.json."""


def of_trial(directory: Path) -> dict[str, FileRecord]:
    """File name -> size and checksums."""
    return {name: of((directory / name).read_bytes()) for name in names(directory)}


def names(directory: Path) -> list[str]:
    """Of the files of a trial that are read when it is examined."""
    return sorted(path.name for pattern in PATTERNS for path in directory.glob(pattern))


def of(data: bytes) -> FileRecord:
    """Pieces as small as the number of checksums allows."""
    chunk = LEAST_CHUNK_BYTES
    while len(data) > chunk * MOST_CHUNKS:
        chunk *= 2
    return FileRecord(bytes=len(data), chunk_bytes=chunk, crc32=_sums(data, chunk))


def _sums(data: bytes, chunk: int) -> str:
    view = memoryview(data)
    sums = (zlib.crc32(view[start : start + chunk]) for start in range(0, len(data), chunk))
    return "".join(f"{value:0{_DIGITS}x}" for value in sums)


def sha256(path: Path) -> str:
    """Of all that the file contains, in hexadecimal."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def whole_bytes(data: bytes, recorded: FileRecord) -> int:
    """How many bytes from the beginning of ``data`` are known to be as they were when the trial ended."""
    found = _sums(data, recorded.chunk_bytes)
    if found == recorded.crc32 and len(data) == recorded.bytes:
        return len(data)
    pairs = zip(_each(found), _each(recorded.crc32), strict=False)
    alike = next((number for number, (one, other) in enumerate(pairs) if one != other), None)
    alike = min(len(found), len(recorded.crc32)) // _DIGITS if alike is None else alike
    return min(alike * recorded.chunk_bytes, len(data), recorded.bytes)


def _each(sums: str) -> list[str]:
    return [sums[start : start + _DIGITS] for start in range(0, len(sums), _DIGITS)]
