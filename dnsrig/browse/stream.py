"""Reads a row file piece by piece, so that memory does not grow with the file. Up to its damage, if it has one.

`dnsrig.runs.rows` reads files as a whole, because metrics and traps want all rows and the checksums of all bytes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO

import polars as pl

from dnsrig.runs import arrow_heads

CHUNK_BYTES = 16 << 20
"""Read at a time; as rows of samples.arrow about 600,000."""
MOST_MESSAGE_BYTES = 1 << 28
_CONTINUES = 0xFFFFFFFF
_UNREADABLE = (Exception, pl.exceptions.PanicException)


def chunks(file: BinaryIO, most_bytes: int = CHUNK_BYTES) -> Iterator[pl.DataFrame]:
    """The rows of an Arrow IPC stream, some batches at a time; ends before what is cut or damaged."""
    schema, dictionaries, waiting, size = b"", dict[int, bytes](), list[bytes](), 0
    before: list[bytes] = []
    for kind, number, message in _messages(file):
        if kind == arrow_heads.SCHEMA:
            schema = message
            continue
        if not waiting:
            before = list(dictionaries.values())
        if kind == arrow_heads.DICTIONARY:
            dictionaries[number] = message
        waiting.append(message)
        size += len(message)
        if kind == arrow_heads.BATCH and size >= most_bytes:
            frame = _parsed([schema, *before, *waiting])
            if frame is None:
                return
            yield frame
            waiting, size = [], 0
    if waiting and (frame := _parsed([schema, *before, *waiting])) is not None:
        yield frame


def _parsed(messages: list[bytes]) -> pl.DataFrame | None:
    """The rows of whole messages, up to the first damaged one."""
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
            found = arrow_heads.read(meta)
        except struct.error:
            return
        body = file.read(found.body_bytes) if found.body_bytes < MOST_MESSAGE_BYTES else b""
        if len(meta) < length or len(body) != found.body_bytes:
            return
        yield found.kind, found.dictionary, head + meta + body
