"""Row files: Arrow IPC streams, of which a reader has whatever lies before the damage.

A stream is a sequence of messages (Arrow columnar format, "Encapsulated message format"): the schema, then record
batches, each with the dictionaries that it needs before it. A file that was cut, or in which bytes were overwritten, is
whole up to the end of some message.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from dnsrig import checksums, files
from dnsrig.errors import DnsrigError
from dnsrig.rundir import FileRecord
from dnsrig.runs.row_files import Schema

CHUNK_BYTES = 16 << 20
"""Read at a time by `chunks`; as rows of samples.arrow about 600,000."""
MOST_MESSAGE_BYTES = 1 << 28
"""Largest message that `chunks` reads."""
END, SCHEMA, DICTIONARY, BATCH = 0, 1, 2, 3
"""Kinds of a message (Message.fbs, union MessageHeader); ``END``: the mark of the end, which has none."""
ROWS_A_BYTE = 8
"""At most: a column of bools takes a bit a row."""
_INT64 = struct.Struct("<q")
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
    ends = [message.end for message in messages(io.BytesIO(data), len(data))]
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
    return max((message.end for message in messages(file, size)), default=0)


@dataclass(frozen=True)
class Message:
    """Where a whole message lies in a file, and what it has."""

    kind: int
    dictionary: int
    """Which one, of a message that has a dictionary; otherwise 0."""
    start: int
    end: int


def messages(file: BinaryIO, size: int) -> Iterator[Message]:
    """The messages that lie wholly within the first ``size`` bytes; the mark of the end counts as one. Of a message
    only the head is read."""
    at = 0
    while at < size:
        file.seek(at)
        try:
            continues, length = struct.unpack("<Ii", file.read(8))
            if continues != _CONTINUES or not 0 <= length <= MOST_HEAD_BYTES:
                return
            head = _read_head(file.read(length)) if length else _Head(END, 0, 0)
        except struct.error:
            return
        end = at + 8 + length + head.body_bytes
        if end > size:
            return
        yield Message(head.kind, head.dictionary, at, end)
        if head.kind == END:
            return
        at = end


def chunks(file: BinaryIO, most_bytes: int = CHUNK_BYTES) -> Iterator[pl.DataFrame]:
    """The rows of an Arrow IPC stream, some batches at a time, so that memory does not grow with the file; ends before
    what is cut or damaged."""
    schema, dictionaries, waiting, size = b"", dict[int, bytes](), list[bytes](), 0
    before: list[bytes] = []
    for message in messages(file, file.seek(0, os.SEEK_END)):
        if message.kind == END or message.end - message.start > MOST_MESSAGE_BYTES:
            break
        file.seek(message.start)
        data = file.read(message.end - message.start)
        if message.kind == SCHEMA:
            schema = data
            continue
        if not waiting:
            before = list(dictionaries.values())
        if message.kind == DICTIONARY:
            dictionaries[message.dictionary] = data
        waiting.append(data)
        size += len(data)
        if message.kind == BATCH and size >= most_bytes:
            frame = _parsed_as_far_as_whole([schema, *before, *waiting])
            if frame is None:
                return
            yield frame
            waiting, size = [], 0
    if waiting and (frame := _parsed_as_far_as_whole([schema, *before, *waiting])) is not None:
        yield frame


def _parsed_as_far_as_whole(found: list[bytes]) -> pl.DataFrame | None:
    """The rows of whole messages, up to the first damaged one."""
    while len(found) > 1:
        if (frame := _parsed(b"".join(found))) is not None:
            return frame
        found = found[: max(1, len(found) // 2)]
    return None


def _parsed(data: bytes) -> pl.DataFrame | None:
    try:
        return pl.read_ipc_stream(io.BytesIO(data))
    except _UNREADABLE:
        return None


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# polars believes lengths in a head: one that was damaged makes it ask for as many bytes, and a process that cannot have
# them ends. So no head reaches polars whose lengths go beyond the body that follows it.


@dataclass(frozen=True)
class _Head:
    kind: int
    dictionary: int
    """Which one, of a message that has a dictionary; otherwise 0."""
    body_bytes: int


class _Table:
    """A FlatBuffers table (FlatBuffers internals: an offset leads back to a list of where its fields are)."""

    def __init__(self, data: bytes, at: int) -> None:
        (back,) = struct.unpack_from("<i", data, at)
        if not 0 <= at - back < len(data):
            raise struct.error("out of bounds")
        (size,) = struct.unpack_from("<H", data, at - back)
        self._data, self._at = data, at
        self._fields = struct.unpack_from(f"<{max(0, size - 4) // 2}H", data, at - back + 4)

    def _place(self, number: int) -> int:
        """Where a field is; 0 where it has its default."""
        offset = self._fields[number] if number < len(self._fields) else 0
        return self._at + offset if offset else 0

    def byte(self, number: int) -> int:
        at = self._place(number)
        return struct.unpack_from("<B", self._data, at)[0] if at else 0

    def number(self, number: int) -> int:
        at = self._place(number)
        return int(_INT64.unpack_from(self._data, at)[0]) if at else 0

    def has(self, number: int) -> bool:
        return bool(self._place(number))

    def table(self, number: int) -> _Table:
        return _Table(self._data, self._leads_to(number))

    def numbers(self, number: int, width: int = 1) -> tuple[int, ...]:
        """A vector of whole numbers of eight bytes, ``width`` an element."""
        if not self.has(number):
            return ()
        at = self._leads_to(number)
        (length,) = struct.unpack_from("<I", self._data, at)
        if length * 8 * width > len(self._data):
            raise struct.error("out of bounds")
        return struct.unpack_from(f"<{length * width}q", self._data, at + 4)

    def _leads_to(self, number: int) -> int:
        at = self._place(number)
        if not at:
            raise struct.error("a field is missing")
        return at + int(struct.unpack_from("<I", self._data, at)[0])


def _read_head(data: bytes) -> _Head:
    """The head in ``data``. Raises struct.error where it is damaged."""
    message = _Table(data, int(struct.unpack_from("<I", data)[0]))
    kind, body_bytes = message.byte(1), message.number(3)
    if body_bytes < 0:
        raise struct.error("out of bounds")
    if kind == DICTIONARY:
        dictionary = message.table(2)
        _check(dictionary.table(1), body_bytes)
        return _Head(kind, dictionary.number(0), body_bytes)
    if kind == BATCH:
        _check(message.table(2), body_bytes)
    return _Head(kind, 0, body_bytes)


def _check(batch: _Table, body_bytes: int) -> None:
    """Refuse a record batch whose rows, columns or buffers go beyond the body, or which is compressed."""
    most_rows = ROWS_A_BYTE * body_bytes
    rows, nodes, buffers = batch.number(0), batch.numbers(1, 2), batch.numbers(2, 2)
    counts = batch.numbers(4)
    within = all(0 <= value <= most_rows for value in (rows, *nodes)) and all(
        0 <= offset <= body_bytes - length and length >= 0 for offset, length in zip(buffers[::2], buffers[1::2])
    )
    if not within or batch.has(3) or not all(0 <= count <= len(buffers) for count in counts):
        raise struct.error("out of bounds")
