"""A client of PostgreSQL for the few questions that a trial asks: its protocol in version 3, with simple queries and no password.

https://www.postgresql.org/docs/current/protocol.html: a message is a type, its length, and a content that the type defines.
"""

from __future__ import annotations

import re
import socket
import struct
from typing import BinaryIO

from dnsrig.errors import DnsrigError

PROTOCOL = 196_608
"""Version 3.0."""
MESSAGE_MOST, MESSAGES_MOST = 1 << 16, 1_000
"""Octets of a message, and messages of an answer: far above one number, or the dozen of settings that a server greets with."""
AUTHENTICATION, ERROR, READY, ROW = b"R", b"E", b"Z", b"D"
TRUSTED = 0

NUMBER = re.compile(r"-?[0-9]{1,19}")
"""A bigint as text."""

Row = list[str | None]


class Refused(DnsrigError):
    """The server answered by an error, or by what is not its protocol."""


class Client:
    """One connection. A write or a read that takes longer than its time raises OSError, and the connection is of no use any more."""

    def __init__(self, connection: socket.socket, user: str, database: str) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        connection.sendall(startup(user, database))
        rows(self._answers)

    @classmethod
    def connect(cls, address: str, port: int, *, user: str, database: str, timeout_s: float) -> Client:
        connection = socket.create_connection((address, port), timeout_s)
        try:
            return cls(connection, user, database)
        except BaseException:
            connection.close()
            raise

    def ask(self, sql: str) -> list[Row]:
        """One statement and its rows, each value as text; `Refused` where it is an error."""
        content = sql.encode() + b"\0"
        self._connection.sendall(b"Q" + struct.pack("!I", 4 + len(content)) + content)
        return rows(self._answers)

    def close(self) -> None:
        self._answers.close()
        self._connection.close()


def startup(user: str, database: str) -> bytes:
    """The first message, which has no type."""
    names = b"user\0%s\0database\0%s\0\0" % (user.encode(), database.encode())
    return struct.pack("!II", 8 + len(names), PROTOCOL) + names


def rows(stream: BinaryIO) -> list[Row]:
    """The rows of one answer, up to the message that says that the server is ready for the next question."""
    found: list[Row] = []
    error = ""
    for _ in range(MESSAGES_MOST):
        kind, content = message(stream)
        if kind == READY:
            if error:
                raise Refused(f"the database says: {error}")
            return found
        if kind == ROW:
            found.append(row(content))
        if kind == ERROR:
            error = error_text(content)
            if error_is_final(content):
                raise Refused(f"the database says: {error}")
        if kind == AUTHENTICATION and content[:4] != struct.pack("!I", TRUSTED):
            raise Refused("the database asks for a password")
    raise Refused("the database does not come to an end of its answer")


def message(stream: BinaryIO) -> tuple[bytes, bytes]:
    """The next message: its type and its content."""
    head = stream.read(5)
    if len(head) != 5:
        raise Refused("the database closed the connection within an answer")
    size = struct.unpack("!I", head[1:])[0]
    if not 4 <= size <= MESSAGE_MOST:
        raise Refused(f"the database announces a message of {size:,} octets", hint="is that port really PostgreSQL's?")
    content = stream.read(size - 4)
    if len(content) != size - 4:
        raise Refused("the database closed the connection within an answer")
    return head[:1], content


def row(content: bytes) -> Row:
    """The values of a row, as text; null is None."""
    try:
        (count,) = struct.unpack_from("!H", content)
        found: Row = []
        at = 2
        for _ in range(count):
            (size,) = struct.unpack_from("!i", content, at)
            at += 4
            if size < 0:
                found.append(None)
                continue
            if at + size > len(content):
                raise Refused("the database sent a row that is cut off")
            found.append(content[at : at + size].decode(errors="replace"))
            at += size
    except struct.error as error:
        raise Refused("the database sent a row that is cut off") from error
    return found


def error_text(content: bytes) -> str:
    """What an error says to a person."""
    return _fields(content).get("M", "no reason")


def error_is_final(content: bytes) -> bool:
    """Whether the server closes the connection after it."""
    return _fields(content).get("S", "") in ("FATAL", "PANIC")


def _fields(content: bytes) -> dict[str, str]:
    parts = (part.decode(errors="replace") for part in content.split(b"\0") if part)
    return {part[0]: part[1:] for part in parts}
