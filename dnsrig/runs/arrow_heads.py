"""Reads and checks the head of a message of an Arrow IPC stream (Arrow columnar format, "Encapsulated message format").

polars believes lengths in a head: one that was damaged makes it ask for as many bytes, and a process that cannot have
them ends. So no head reaches polars whose lengths go beyond the body that follows it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SCHEMA, DICTIONARY, BATCH = 1, 2, 3
"""Kinds of a message (Message.fbs, union MessageHeader)."""
ROWS_A_BYTE = 8
"""At most: a column of bools takes a bit a row."""
_INT64 = struct.Struct("<q")


@dataclass(frozen=True)
class Head:
    kind: int
    dictionary: int
    """Which one, of a message that has a dictionary; otherwise 0."""
    body_bytes: int


class Table:
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

    def table(self, number: int) -> Table:
        return Table(self._data, self._leads_to(number))

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


def read(data: bytes) -> Head:
    """The head in ``data``. Raises struct.error where it is damaged."""
    message = Table(data, int(struct.unpack_from("<I", data)[0]))
    kind, body_bytes = message.byte(1), message.number(3)
    if body_bytes < 0:
        raise struct.error("out of bounds")
    if kind == DICTIONARY:
        dictionary = message.table(2)
        _check(dictionary.table(1), body_bytes)
        return Head(kind, dictionary.number(0), body_bytes)
    if kind == BATCH:
        _check(message.table(2), body_bytes)
    return Head(kind, 0, body_bytes)


def _check(batch: Table, body_bytes: int) -> None:
    """Refuse a record batch whose rows, columns or buffers go beyond the body, or which is compressed."""
    most_rows = ROWS_A_BYTE * body_bytes
    rows, nodes, buffers = batch.number(0), batch.numbers(1, 2), batch.numbers(2, 2)
    counts = batch.numbers(4)
    within = all(0 <= value <= most_rows for value in (rows, *nodes)) and all(
        0 <= offset <= body_bytes - length and length >= 0 for offset, length in zip(buffers[::2], buffers[1::2])
    )
    if not within or batch.has(3) or not all(0 <= count <= len(buffers) for count in counts):
        raise struct.error("out of bounds")
