"""What a running resolver counts, in the same words for every kind, and where it tells it.

Each driver has a pure function that reads what its server answers. None fails on what a server wrote: what it does not
understand is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from socket import SHUT_WR
from socket import socket as Connection

NAMES: Mapping[str, str] = {
    "client_queries": "queries of clients",
    "cache_hits": "of those, answered without asking anybody",
    "cache_misses": "of those, for which it asked",
    "upstream_queries": "queries that it sent",
    "upstream_timeouts": "of those, that had no answer in time",
    "validations": "checks by DNSSEC, in a unit of its own",
    "bogus": "of those, that failed",
}
Counters = dict[str, float]
MOST = 1e18
"""Of a counter; what is more, or infinite, is damage."""
MOST_BYTES = 4 << 20
ANSWER_LIMIT_S = 2.0
"""Of the whole answer: a server under load may take some time, and the next sample is soon."""


@dataclass(frozen=True)
class Channel:
    """Where it tells them: a Unix socket in its state folder, or a TCP port at its address."""

    request: bytes
    read: Callable[[bytes], Counters]
    socket: str = ""
    port: int = 0
    ends_request: bool = False
    """Whether it waits for the end of what it is sent."""

    def ask(self, connection: Connection) -> Counters:
        """By a connection that is open. Raises OSError."""
        connection.settimeout(ANSWER_LIMIT_S)
        connection.sendall(self.request)
        if self.ends_request:
            connection.shutdown(SHUT_WR)
        answer, deadline = bytearray(), time.monotonic() + ANSWER_LIMIT_S
        while len(answer) < MOST_BYTES and time.monotonic() < deadline and (more := connection.recv(1 << 16)):
            answer += more
        return self.read(bytes(answer))


def of_lines(answer: bytes, separator: str) -> Counters:
    """``name<separator>number`` a line; other lines are left out.

    >>> of_lines(b"total.num.queries=5\\nversion=x\\n", "=")
    {'total.num.queries': 5.0}
    """
    found: Counters = {}
    for line in answer.decode(errors="replace").splitlines():
        name, _, text = line.partition(separator)
        if (number := _number(text)) is not None:
            found[name] = number
    return found


def nested(value: object, *path: str) -> float:
    """The number at ``path`` of what JSON said; 0 where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) and abs(value) < MOST else 0.0


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < MOST else None  # NaN is not less
