"""A client of Redis and Valkey for the few commands with which a trial looks at them: RESP, their protocol, in version 2.

https://redis.io/docs/latest/develop/reference/protocol-spec/: a command is an array of bulk strings; an answer begins with its type.
"""

from __future__ import annotations

import socket
from typing import BinaryIO

from dnsrig.errors import DnsrigError

Reply = str | int | list["Reply"] | None
LINE_MOST = 65_536
SIZE_MOST = 1 << 26
"""Of a string in octets, of a list in items: far above what is asked for here, at most a list of a few million zones."""
DIGITS_MOST = 19
DEPTH_MOST = 8


class Refused(DnsrigError):
    """The server answered by an error, or by what is no RESP."""


class Client:
    """One connection. A write or a read that takes longer than its time raises OSError, and the connection is of no use any more."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")

    @classmethod
    def connect(cls, address: str, port: int, *, timeout_s: float) -> Client:
        return cls(socket.create_connection((address, port), timeout_s))

    def ask(self, *words: str) -> Reply:
        """One command and its answer; `Refused` where that is an error."""
        self._connection.sendall(command(words))
        return read(self._answers)

    def close(self) -> None:
        self._answers.close()
        self._connection.close()


def command(words: tuple[str, ...]) -> bytes:
    """
    >>> command(("INFO", "memory"))
    b'*2\\r\\n$4\\r\\nINFO\\r\\n$6\\r\\nmemory\\r\\n'
    """
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)


def read(stream: BinaryIO, depth: int = 0) -> Reply:
    """The next answer of ``stream``. Octets that are no UTF-8 are replaced."""
    line = stream.readline(LINE_MOST)
    if not line.endswith(b"\r\n"):
        raise Refused("the database closed the connection within an answer, or does not speak RESP")
    kind, text = line[:1], line[1:-2].decode(errors="replace")
    if kind == b"+":
        return text
    if kind == b"-":
        raise Refused(f"the database says: {text}")
    if kind == b":":
        return number(text)
    if kind == b"$":
        return _bulk(stream, _size(text))
    if kind == b"*" and depth < DEPTH_MOST:
        count = _size(text)
        return None if count < 0 else [read(stream, depth + 1) for _ in range(count)]
    raise Refused(f"the database answered {line[:40]!r}, which is no RESP")


def _bulk(stream: BinaryIO, size: int) -> str | None:
    if size < 0:
        return None
    found = stream.read(size + 2)
    if len(found) != size + 2 or not found.endswith(b"\r\n"):
        raise Refused("the database closed the connection within an answer")
    return found[:-2].decode(errors="replace")


def number(text: str) -> int:
    """A whole number as the server writes it."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > DIGITS_MOST:
        raise Refused(f"the database answered {text[:40]!r} where a number belongs")
    return int(text)


def _size(text: str) -> int:
    """Of what follows; -1: nothing does."""
    if (size := number(text)) > SIZE_MOST:
        raise Refused(f"the database announces {size:,} octets or items", hint="is that port really the database's?")
    return size


def fields(text: str) -> dict[str, str]:
    """The answer to INFO: a line a field, and headings.

    >>> fields("# Replication\\r\\nrole:slave\\r\\nmaster_link_status:up\\r\\n")
    {'role': 'slave', 'master_link_status': 'up'}
    """
    split = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in split if colon}
