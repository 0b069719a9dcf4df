"""Connections of clients: one that brings no whole request in time is closed, so that it takes nobody's place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_AT_ONCE = 64
"""Connections; a browser has six to one server."""
REQUEST_S = 10.0
"""In which a request must arrive, counted from the connection or from the answer before."""
KNOWN = "known"
"""In the state of a request: it brought the token. `guard` sets it."""


class Connection(H11Protocol):
    """One connection."""

    known = False
    """Whether one of its requests brought the token."""
    since_s = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MOST_AT_ONCE - 1 and (closed := dispensable(self.connections)):
            closed.give_up()
        super().connection_made(transport)
        self.since_s = self.loop.time()
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def on_response_complete(self) -> None:
        self.known = self.known or KNOWN in self.scope["state"]
        super().on_response_complete()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    @property
    def waiting(self) -> bool:
        """Whether there is no whole request of it that is not answered yet."""
        return self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    def give_up(self) -> None:
        self.connections.discard(self)
        self.transport.close()

    def _expect_request(self) -> None:
        """Bytes that arrive one by one do not move the deadline."""
        if not self.waiting:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self.give_up)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def dispensable(connections: Iterable[Any]) -> Any:
    """The connection to close for a new one: of those that wait for a request the oldest, first one that never brought
    the token; None if all are being answered."""
    waiting = (each for each in connections if each.waiting)
    return min(waiting, key=lambda each: (each.known, each.since_s), default=None)
