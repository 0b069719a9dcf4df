"""Reads a row file piece by piece, so that memory does not grow with the file. Up to its damage, if it has one.

`dnsrig.analysis.rows` reads files as a whole, because metrics and traps want all rows and the checksums of all bytes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO

import polars as pl

CHUNK_BYTES = 16 << 20
"""Read at a time; as rows of samples.arrow about 600,000."""
MOST_MESSAGE_BYTES = 1 << 28
_CONTINUES = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
"""Kinds of a message (Message.fbs, union MessageHeader)."""
_UNREADABLE = (Exception, pl.exceptions.PanicException)


def chunks(file: BinaryIO, most_bytes: int = CHUNK_BYTES) -> Iterator[pl.DataFrame]:
    """The rows of an Arrow IPC stream, some batches at a time; ends before what is cut or damaged."""
    schema, dictionaries, waiting, size = b"", dict[int, bytes](), list[bytes](), 0
    before: list[bytes] = []
    for kind, number, message in _messages(file):
        if kind == _SCHEMA:
            schema = message
            continue
        if not waiting:
            before = list(dictionaries.values())
        if kind == _DICTIONARY:
            dictionaries[number] = message
        waiting.append(message)
        size += len(message)
        if kind == _BATCH and size >= most_bytes:
            frame = _parsed([schema, *before, *waiting])
            if frame is None:
                return
            yield frame
            waiting, size = [], 0
    if waiting and (frame := _parsed([schema, *before, *waiting])) is not None:
        yield frame


def _parsed(messages: list[bytes]) -> pl.DataFrame | None:
    """Of messages that are whole; without a damaged one at the end and all after it."""
    while len(messages) > 1:
        try:
            return pl.read_ipc_stream(io.BytesIO(b"".join(messages)))
        except _UNREADABLE:
            messages = messages[: max(1, len(messages) // 2)]
    return None


def _messages(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Each whole message: its kind, of a dictionary which one, and its bytes."""
    while len(head := file.read(8)) == 8:
        continues, length = struct.unpack("<Ii", head)
        if continues != _CONTINUES or not 0 < length < MOST_MESSAGE_BYTES:
            return
        meta = file.read(length)
        try:
            kind, number, body_bytes = _facts(meta)
        except (struct.error, IndexError):
            return
        body = file.read(body_bytes) if 0 <= body_bytes < MOST_MESSAGE_BYTES else b""
        if len(meta) < length or len(body) != body_bytes:
            return
        yield kind, number, head + meta + body


def _facts(meta: bytes) -> tuple[int, int, int]:
    """Kind, number of the dictionary, bytes of the body, of a FlatBuffers table Message."""
    (table,) = struct.unpack_from("<I", meta)
    kind_at, header_at, body_at = (_field(meta, table, number) for number in (1, 2, 3))
    kind = meta[kind_at] if kind_at else 0
    body_bytes = struct.unpack_from("<q", meta, body_at)[0] if body_at else 0
    number = 0
    if kind == _DICTIONARY and header_at:
        inner = header_at + struct.unpack_from("<I", meta, header_at)[0]
        id_at = _field(meta, inner, 0)
        number = struct.unpack_from("<q", meta, id_at)[0] if id_at else 0
    return kind, number, int(body_bytes)


def _field(meta: bytes, table: int, number: int) -> int:
    """Where a field of a table lies; 0 where it has its default. Raises struct.error out of bounds."""
    (back,) = struct.unpack_from("<i", meta, table)
    fields = table - back
    if fields < 0:
        raise struct.error("out of bounds")
    (size,) = struct.unpack_from("<H", meta, fields)
    entry = 4 + 2 * number
    if entry >= size:
        return 0
    (offset,) = struct.unpack_from("<H", meta, fields + entry)
    return table + int(offset) if offset else 0
