"""The client of PostgreSQL: what it sends, and what it makes of any octets that come back."""

from __future__ import annotations

import contextlib
import io
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.servers.pgwire import MESSAGE_MOST, MESSAGES_MOST, Client, Refused, Row, message, row, rows, startup

values = st.none() | st.text(st.characters(codec="utf-8"), max_size=10)
tables = st.lists(st.lists(values, max_size=4), max_size=4)
READY = b"Z\0\0\0\5I"


def encoded(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!I", 4 + len(content)) + content


def data_row(values: Row) -> bytes:
    parts = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v.encode())) + v.encode() for v in values]
    return encoded(b"D", struct.pack("!H", len(values)) + b"".join(parts))


def answer(table: list[Row]) -> bytes:
    """As a server gives it: a description of the columns, the rows, what was done, ready."""
    return encoded(b"T", b"\0\0") + b"".join(map(data_row, table)) + encoded(b"C", b"SELECT\0") + READY


def error(severity: bytes, text: bytes) -> bytes:
    return encoded(b"E", b"S%s\0C42P01\0M%s\0\0" % (severity, text))


@given(tables)
def test_rows_are_read_back(table: list[Row]) -> None:
    stream = io.BytesIO(answer(table) + READY)
    assert rows(stream) == table
    assert rows(stream) == [], "not an octet more was taken"


@given(tables, st.data())
def test_an_answer_that_is_cut_off_is_refused(table: list[Row], data: st.DataObject) -> None:
    whole = answer(table)
    with pytest.raises(Refused):
        rows(io.BytesIO(whole[: data.draw(st.integers(0, len(whole) - 1))]))


@given(st.binary(max_size=60))
def test_any_octets_are_an_answer_or_refused(octets: bytes) -> None:
    for read in (rows, message):
        with contextlib.suppress(Refused):
            read(io.BytesIO(octets))
    with contextlib.suppress(Refused):
        row(octets)


def test_an_error_is_told_and_the_connection_stays_in_step() -> None:
    stream = io.BytesIO(error(b"ERROR", b"no such table") + READY + answer([["1"]]))
    with pytest.raises(Refused, match="no such table"):
        rows(stream)
    assert rows(stream) == [["1"]]


def test_a_server_that_starts_or_wants_a_password_is_refused() -> None:
    with pytest.raises(Refused, match="starting up"):
        rows(io.BytesIO(error(b"FATAL", b"the database system is starting up")))
    with pytest.raises(Refused, match="password"):
        rows(io.BytesIO(encoded(b"R", struct.pack("!I", 3))))


def test_what_is_larger_than_any_answer_is_refused() -> None:
    with pytest.raises(Refused, match="a message of 65,537 octets"):
        rows(io.BytesIO(b"D" + struct.pack("!I", MESSAGE_MOST + 1)))
    with pytest.raises(Refused, match="does not come to an end"):
        rows(io.BytesIO(data_row(["1"]) * (MESSAGES_MOST + 1) + READY))


def test_a_client_says_who_it_is_and_asks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(1000) == startup("dnsrig", "postgres")
                connection.sendall(encoded(b"R", struct.pack("!I", 0)) + encoded(b"S", b"a\0b\0") + READY)
                assert connection.recv(1000) == encoded(b"Q", b"SELECT 42\0")
                connection.sendall(answer([["42"]]))

        thread = threading.Thread(target=serve)
        thread.start()
        address, port = server.getsockname()
        client = Client.connect(address, port, user="dnsrig", database="postgres", timeout_s=5)
        assert client.ask("SELECT 42") == [["42"]]
        client.close()
        thread.join()
