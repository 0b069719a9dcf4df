"""Row files: Arrow IPC streams, of which a reader has whatever lies before the damage.

A stream is a sequence of messages (Arrow columnar format, "Encapsulated message format"): the schema, then record
batches, each with the dictionaries that it needs before it. A file that was cut, or in which bytes were overwritten, is
whole up to the end of some message.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from dnsrig import checksums, old_names
from dnsrig.analysis.row_files import Schema
from dnsrig.errors import DnsrigError
from dnsrig.rundir import FileRecord

_CONTINUES = 0xFFFFFFFF
_BODY_LENGTH_FIELD = 3
"""Number of the field of a Message that says how long its body is (Message.fbs)."""
_UNREADABLE = (Exception, pl.exceptions.PanicException)
"""What polars raises at damaged data; a panic of its is no Exception."""


class DamagedFile(DnsrigError):
    """A file of a trial is not whole, so what it would say is not known."""


@dataclass(frozen=True)
class Content:
    """The bytes of a file that are whole, as far as checksums tell."""

    data: bytes
    damage: str = ""
    """What is wrong with the file; empty of one that is as it was written, or of which no checksums were recorded."""


def content(path: Path, recorded: FileRecord | None) -> Content:
    """Of ``path``; empty where it is not there, which is a damage only where it was ``recorded``."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Content(b"", f"{path.name} is gone: it had {recorded.bytes:,} bytes" if recorded else "")
    except OSError as error:
        return Content(b"", f"{path.name} cannot be read: {error.strerror}")
    whole = checksums.whole_bytes(data, recorded) if recorded else len(data)
    if recorded is None or whole == len(data) == recorded.bytes:
        return Content(data)
    was = f"{recorded.bytes:,} bytes" if len(data) != recorded.bytes else "others"
    return Content(
        data[:whole], f"{path.name} was changed since the trial: whole up to byte {whole:,} of {len(data):,}, had {was}"
    )


@dataclass(frozen=True)
class Rows:
    frame: pl.DataFrame
    damage: str = ""
    """What is wrong with the file; ``frame`` then has the rows before that."""


def read(path: Path, recorded: FileRecord | None, schema: Schema, later: Collection[str] = ()) -> Rows:
    """Rows of an Arrow IPC stream; none where the file is missing. ``later``: columns that are 0 where the file does
    not have them."""
    found = content(path, recorded)
    frame, rows_damage = whole_batches(found.data)
    damage = found.damage or (f"{path.name} {rows_damage}" if rows_damage else "")
    if frame is None:
        return Rows(_none(tuple(schema.items())), damage)
    frame = old_names.rows(frame)
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
    ends = message_ends(data)
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


def message_ends(data: bytes) -> list[int]:
    """Where each message ends that lies wholly within ``data``; the mark of the end counts as one."""
    ends: list[int] = []
    at = 0
    while at < len(data):
        try:
            continues, length = struct.unpack_from("<Ii", data, at)
            if continues != _CONTINUES or length < 0:
                break
            at += 8 + length + (_body_bytes(data[at + 8 : at + 8 + length]) if length else 0)
        except struct.error:
            break
        if at > len(data):
            break
        ends.append(at)
        if not length:
            break
    return ends


def _body_bytes(message: bytes) -> int:
    """The length of the body that follows ``message``, a FlatBuffers table (its internals: offsets from the table back
    to a list of fields)."""
    (table,) = struct.unpack_from("<I", message)
    (back,) = struct.unpack_from("<i", message, table)
    fields = table - back
    (size,) = struct.unpack_from("<H", message, fields)
    entry = 4 + 2 * _BODY_LENGTH_FIELD
    (offset,) = struct.unpack_from("<H", message, fields + entry) if entry < size else (0,)
    body = struct.unpack_from("<q", message, table + offset)[0] if offset else 0
    if fields < 0 or body < 0:
        raise struct.error("out of bounds")
    return int(body)


def _parsed(data: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_ipc_stream(io.BytesIO(data))
    except _UNREADABLE:
        return None


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
