"""Clients of databases against servers that misbehave: every wait has an end, every answer a size, every failure one
name."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsrig.servers import postgresql, redis
from dnsrig.servers.database import Console, Database, Refused

LOOPBACK = ipaddress.ip_address("127.0.0.1")
SHORT_S = 0.05
PING = b"*1\r\n$4\r\nPING\r\n"


@contextmanager
def answering(reply: Callable[[bytes], bytes | None]) -> Iterator[int]:
    """The port of a server that sends ``reply`` to whatever it reads; None: it closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                connection, _ = server.accept()
                with connection:
                    while (data := connection.recv(65_536)) and (answer := reply(data)) is not None:
                        connection.sendall(answer)
            except OSError:
                return  # the client has gone, or the test is over

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def console(kind: type[Database], port: int, monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setattr(kind, "port", port)
    return kind().console(LOOPBACK)


def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (redis, postgresql):
        monkeypatch.setattr(module, "CONSOLE_LIMIT_S", SHORT_S)


def test_redis_is_asked_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    info = b"# Replication\r\nmaster_link_status:up\r\nslave_repl_offset:7\r\n"

    def reply(data: bytes) -> bytes:
        if b"PING" in data:
            return b"+PONG\r\n"
        return b"$%d\r\n%s\r\n" % (len(info), info) if b"INFO" in data else b"+OK\r\n" * data.count(b"SETINFO")

    with answering(reply) as port:
        found = console(redis.Redis, port, monkeypatch)
        assert found.has_all(7) and not found.has_all(8)
        found.close()


@pytest.mark.parametrize("answer", [b"-LOADING wait\r\n", b"?\r\n", b"$99999999999\r\nx", b":1x\r\n", None])
def test_what_redis_must_not_answer_is_refused(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    no_patience(monkeypatch)
    with answering(lambda data: answer) as port, pytest.raises(Refused):
        console(redis.Redis, port, monkeypatch)


def test_a_redis_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    no_patience(monkeypatch)
    with answering(lambda data: b"") as port, pytest.raises(Refused, match=r"(?i)timeout"):
        console(redis.Redis, port, monkeypatch)


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis, "ANSWER_BYTES_MOST", 1 << 16)
    with (
        answering(lambda data: b"$1000000\r\n" + b"x" * 1_000_000) as port,
        pytest.raises((Refused, OSError)) as caught,
    ):
        console(redis.Redis, port, monkeypatch)
    assert "more than 65,536 bytes" in str(caught.value)


@settings(max_examples=25)
@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_are_no_redis_or_refused(data: bytes) -> None:
    """Only the two exceptions that a console may raise; an answer that is whole and says PONG is none."""
    with pytest.MonkeyPatch.context() as monkeypatch, answering(lambda asked: data) as port:
        no_patience(monkeypatch)
        try:
            console(redis.Redis, port, monkeypatch).close()
        except (OSError, redis.DnsrigError):
            return
        assert data.upper().startswith(b"+PONG") or b"PONG" in data


def test_a_postgresql_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "CONSOLE_LIMIT_S", 2)  # libpq waits for a connection two seconds at least
    with answering(lambda data: b"") as port, pytest.raises(Refused, match=r"(?i)timeout"):
        console(postgresql.PostgreSql, port, monkeypatch)


def test_a_postgresql_that_stops_answering_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    greeting = b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\5I"
    with answering(lambda data: greeting if b"user" in data else b"") as port:
        monkeypatch.setattr(postgresql, "CONSOLE_LIMIT_S", 2)
        found = console(postgresql.PostgreSql, port, monkeypatch)
        with pytest.raises(Refused, match=r"(?i)timeout"):
            found.zones()
        found.close()


def test_what_is_no_postgresql_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "CONSOLE_LIMIT_S", 2)
    for answer in (b"HTTP/1.1 400 Bad Request\r\n\r\n", None):
        with answering(lambda data, answer=answer: answer) as port, pytest.raises(Refused):  # type: ignore[misc]
            console(postgresql.PostgreSql, port, monkeypatch)


class Client:
    """A client of a Redis that answers INFO and the list of zones like this."""

    def __init__(self, info: object, zones: object = "") -> None:
        self.answers = {"PING": "PONG", "INFO": info, "KNOT.ZONE.LIST": zones}

    def execute_command(self, *words: str) -> object:
        return self.answers[words[0]]


@pytest.mark.parametrize(
    ("info", "position", "has_all_up_to", "memory_bytes"),
    [
        ({}, 0, None, 0),
        ("", 0, None, 0),
        ({"master_repl_offset": 7, "used_memory": 9}, 7, None, 9),
        ({"master_link_status": "up", "slave_repl_offset": 7}, 0, 7, 0),
        ({"master_link_status": "up", "slave_repl_offset": 0}, 0, 0, 0),
        ({"master_link_status": "up"}, 0, -1, 0),
        ({"master_link_status": "down", "slave_repl_offset": 7}, 0, None, 0),
    ],
)
def test_a_replica_has_all_up_to_its_offset_while_its_link_is_up(
    info: object, position: int, has_all_up_to: int | None, memory_bytes: int
) -> None:
    found = redis.RedisConsole(Client(info))  # type: ignore[arg-type]
    assert (found.position(), found.facts()) == (position, {"memory_bytes": memory_bytes})
    if has_all_up_to is None:
        assert not found.has_all(0)
    else:
        assert found.has_all(has_all_up_to) and not found.has_all(has_all_up_to + 1)


@pytest.mark.parametrize(("answer", "zones"), [([], 0), (["a", "b"], 2), ("OK", 0), (7, 0)])
def test_zones_are_counted_in_a_list(answer: object, zones: int) -> None:
    assert redis.RedisConsole(Client({}, answer)).zones() == zones  # type: ignore[arg-type]


def test_a_number_that_is_none_is_refused() -> None:
    found = redis.RedisConsole(Client({"master_repl_offset": "many"}))  # type: ignore[arg-type]
    with pytest.raises(Refused, match="'many' instead of a number"):
        found.position()
