"""Row files: Arrow IPC streams, of which a reader has whatever lies before the damage.

A stream is a sequence of messages (Arrow columnar format, "Encapsulated message format"): the schema, then record
batches, each with the dictionaries that it needs before it. A file that was cut, or in which bytes were overwritten, is
whole up to the end of some message.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from dnsrig import checksums, files
from dnsrig.errors import DnsrigError
from dnsrig.rundir import FileRecord
from dnsrig.runs import arrow_heads
from dnsrig.runs.row_files import Schema

MOST_LINE_BYTES = 1 << 24
"""Longest line of latency.hlog and of folded stacks; the longest that were seen have some 10 kB."""
MOST_HEAD_BYTES = 1 << 24
"""Largest head of a message: it has some hundred bytes a column."""
_CONTINUES = 0xFFFFFFFF
_UNREADABLE = (Exception, pl.exceptions.PanicException)
"""What polars raises at damaged data; a panic of its is no Exception."""


class DamagedFile(DnsrigError):
    """A file of a trial is not whole, so what it would say is not known."""


@dataclass(frozen=True)
class Content:
    """The bytes of a file that are whole, as far as checksums and the form of the file show."""

    data: bytes
    damage: str = ""
    """What is wrong with the file; empty of one that is as it was written, or of which no checksums were recorded."""


Form = Callable[[BinaryIO, int], int]
"""Takes a file and a number of bytes, and returns how many of these have the right form: the rest is not read."""


def whole_lines(file: BinaryIO, size: int) -> int:
    """The form of lines, none of which is longer than `MOST_LINE_BYTES`."""
    whole = 0
    while whole < size:
        part = file.read(min(MOST_LINE_BYTES, size - whole))
        end = whole + len(part) == size or not part
        line = len(part) if end else part.rfind(b"\n") + 1
        if not line:
            return whole
        whole += line
        file.seek(whole)
        if end:
            return whole
    return whole


def content(path: Path, recorded: FileRecord | None, inside: Path | None = None, form: Form = whole_lines) -> Content:
    """Of ``path``; empty where it is not there, which is a damage only where it was ``recorded``. ``inside``: as in
    `dnsrig.files`."""
    try:
        with files.opened(path, inside) as file:
            return _content(file, path.name, recorded, form)
    except FileNotFoundError:
        return Content(b"", f"{path.name} is gone: it had {recorded.bytes:,} bytes" if recorded else "")
    except OSError as error:
        return Content(b"", f"{path.name} cannot be read: {error.strerror}")


def _content(file: BinaryIO, name: str, recorded: FileRecord | None, form: Form) -> Content:
    size = file.seek(0, os.SEEK_END)
    if size > files.MOST_BYTES:
        return Content(b"", f"{name} is larger than {files.MOST_BYTES:,} bytes, and is not read")
    whole = checksums.whole_bytes(file, recorded) if recorded else size
    file.seek(0)
    usable = form(file, whole)
    file.seek(0)
    data = file.read(usable)
    if recorded is not None and not whole == size == recorded.bytes:
        was = f"{recorded.bytes:,} bytes" if size != recorded.bytes else "others"
        return Content(data, f"{name} was changed since the trial: whole up to byte {whole:,} of {size:,}, had {was}")
    return Content(data, f"{name} is damaged: whole up to byte {usable:,} of {size:,}" if usable < whole else "")


@dataclass(frozen=True)
class Rows:
    frame: pl.DataFrame
    damage: str = ""
    """What is wrong with the file; ``frame`` then has the rows before that."""


def read(
    path: Path,
    recorded: FileRecord | None,
    schema: Schema,
    later: Collection[str] = (),
    inside: Path | None = None,
) -> Rows:
    """Rows of an Arrow IPC stream; none where the file is missing. ``later``: columns that are 0 where the file does
    not have them; ``inside``: as in `dnsrig.files`."""
    found = content(path, recorded, inside, whole_messages)
    frame, rows_damage = whole_batches(found.data)
    damage = found.damage or (f"{path.name} {rows_damage}" if rows_damage else "")
    if frame is None:
        return Rows(_none(tuple(schema.items())), damage)
    frame = frame.with_columns(pl.lit(0).alias(name) for name in later if name not in frame.columns)
    if missing := sorted(set(schema) - set(frame.columns)):
        return Rows(_none(tuple(schema.items())), damage or f"{path.name} lacks the column {missing[0]}")
    try:
        return Rows(frame.select([pl.col(name).cast(dtype) for name, dtype in schema.items()]), damage)
    except _UNREADABLE as error:
        return Rows(_none(tuple(schema.items())), damage or f"{path.name} has another type of column: {_line(error)}")


@cache
def _none(schema: tuple[tuple[str, Any], ...]) -> pl.DataFrame:
    """No rows. The same frame each time: it takes 500 bytes a column, and many trials lack the same files."""
    return pl.DataFrame(schema=dict(schema))


def whole_batches(data: bytes) -> tuple[pl.DataFrame | None, str]:
    """The rows of all batches before the first that is cut or damaged, and what is wrong; None where not even the
    schema is whole."""
    if not data:
        return None, ""
    ends = message_ends(io.BytesIO(data), len(data))
    frame = _parsed(data) if ends and ends[-1] == len(data) else None
    if frame is not None:
        return frame, ""
    low, high = 0, len(ends)  # as many messages are whole as the longest beginning that can be read has
    while low < high:
        middle = (low + high + 1) // 2
        if _parsed(data[: ends[middle - 1]]) is None:
            high = middle - 1
        else:
            low = middle
    whole = ends[low - 1] if low else 0
    return _parsed(data[:whole]) if whole else None, f"is damaged: whole up to byte {whole:,} of {len(data):,}"


def whole_messages(file: BinaryIO, size: int) -> int:
    """The form of an Arrow IPC stream: messages."""
    return max(message_ends(file, size), default=0)


def message_ends(file: BinaryIO, size: int) -> list[int]:
    """Where each message ends that lies wholly within the first ``size`` bytes; the mark of the end counts as one. Of a
    message only the head is read."""
    ends: list[int] = []
    at = 0
    while at < size:
        file.seek(at)
        try:
            continues, length = struct.unpack("<Ii", file.read(8))
            if continues != _CONTINUES or not 0 <= length <= MOST_HEAD_BYTES:
                break
            at += 8 + length + (arrow_heads.read(file.read(length)).body_bytes if length else 0)
        except struct.error:
            break
        if at > size:
            break
        ends.append(at)
        if not length:
            break
    return ends


def _parsed(data: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_ipc_stream(io.BytesIO(data))
    except _UNREADABLE:
        return None


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
