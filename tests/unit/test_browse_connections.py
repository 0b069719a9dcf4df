"""Connections that bring no request take nobody's place. The loop and the sockets are made up: no time passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from dnsrig.browse.connections import KNOWN, MOST_AT_ONCE, REQUEST_S, Connection, dispensable

REQUEST = b"GET /name HTTP/1.1\r\nHost: here\r\n\r\n"


class Timer:
    def __init__(self, at_s: float, call: Callable[[], None]) -> None:
        self.at_s, self.call, self.cancelled = at_s, call, False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """Time stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s, self.timers, self.tasks = 0.0, list[Timer](), list[Any]()

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now_s + delay_s, call))
        return self.timers[-1]

    def create_task(self, coroutine: Any) -> Any:
        self.tasks.append(coroutine)
        return Task()

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds
        due = [timer for timer in self.timers if timer.at_s <= self.now_s and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer not in due]
        for timer in due:
            timer.call()


class Task:
    def add_done_callback(self, call: Callable[[Any], None]) -> None: ...


class Transport(asyncio.Transport):
    closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return None

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: Any) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Browser:
    """Connections to one server."""

    def __init__(self, answer: Callable[[dict[str, Any]], None] = lambda scope: None) -> None:
        self.loop, self.state, self.answer = Loop(), ServerState(), answer
        self.config = Config(
            self.app,
            http=Connection,
            limit_concurrency=MOST_AT_ONCE,
            log_level="error",
            lifespan="off",
            interface="asgi3",
        )

    async def app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.answer(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def connect(self, sent: bytes = b"") -> tuple[Connection, Transport]:
        made = Connection(self.config, self.state, {}, self.loop)  # type: ignore[arg-type]
        self.loop.now_s += 0.001
        transport = Transport()
        made.connection_made(transport)
        if sent:
            made.data_received(sent)
        return made, transport

    def answer_all(self) -> None:
        """Execute what requests started."""
        for task in self.loop.tasks:
            asyncio.run(task)
        self.loop.tasks.clear()


@pytest.mark.parametrize("sent", [b"", REQUEST[:9], b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf"])
def test_a_connection_without_a_whole_request_is_closed(sent: bytes) -> None:
    browser = Browser()
    connection, transport = browser.connect(sent)
    for byte in b"aaaaaaaa":
        browser.loop.pass_s(REQUEST_S / 10)
        if sent == REQUEST[:9]:
            connection.data_received(bytes([byte]))
    assert not transport.is_closing()
    browser.loop.pass_s(REQUEST_S / 4)
    assert transport.is_closing() and connection not in browser.state.connections
    for task in browser.loop.tasks:
        task.close()


def test_an_answer_may_take_its_time() -> None:
    browser = Browser()
    _, transport = browser.connect(REQUEST)
    browser.loop.pass_s(100 * REQUEST_S)
    assert not transport.is_closing()
    browser.answer_all()
    browser.loop.pass_s(REQUEST_S)
    assert transport.is_closing(), "and after it the next request must come"


def test_strangers_give_way() -> None:
    """64 connections without a token once were an error 503 for everybody."""
    browser = Browser(lambda scope: scope["state"].update({KNOWN: True}))
    known, kept = browser.connect(REQUEST)
    browser.answer_all()
    strangers = [browser.connect()[1] for _ in range(2 * MOST_AT_ONCE)]
    assert len(browser.state.connections) < MOST_AT_ONCE, "so that none is refused"
    assert not kept.closed and known.known
    assert [stranger.closed for stranger in strangers] == [True] * (len(strangers) - 62) + [False] * 62, (
        "the oldest first"
    )


def test_nobody_gives_way_while_being_answered() -> None:
    browser = Browser()
    busy = [browser.connect(REQUEST)[0] for _ in range(3)]
    assert dispensable(busy) is None
    idle, _ = browser.connect()
    assert dispensable([*busy, idle]) is idle
    browser.answer_all()
