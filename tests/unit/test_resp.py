"""The client of Redis and Valkey: what it sends, and what it makes of any octets that come back."""

from __future__ import annotations

import contextlib
import io
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.servers.resp import Client, Refused, Reply, command, fields, read


def encode(value: Reply) -> bytes:
    """An answer as a server writes it."""
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, str):
        return b"$%d\r\n%s\r\n" % (len(value.encode()), value.encode())
    return b"*%d\r\n" % len(value) + b"".join(encode(item) for item in value)


texts = st.text(st.characters(codec="utf-8"), max_size=20)
leaves = st.none() | st.integers(-(10**18), 10**18) | texts
replies = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4), max_leaves=10)


@given(replies)
def test_what_a_server_writes_is_read_back(value: Reply) -> None:
    stream = io.BytesIO(encode(value) + b"+next\r\n")
    assert read(stream) == value
    assert read(stream) == "next", "not an octet more was taken"


@given(st.lists(texts, min_size=1, max_size=4))
def test_a_command_is_an_array_of_strings(words: list[str]) -> None:
    assert read(io.BytesIO(command(tuple(words)))) == words


@given(st.binary(max_size=60))
def test_any_octets_are_an_answer_or_refused(octets: bytes) -> None:
    with contextlib.suppress(Refused):
        read(io.BytesIO(octets))


@given(replies, st.data())
def test_an_answer_that_is_cut_off_is_refused(value: Reply, data: st.DataObject) -> None:
    whole = encode(value)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Refused):
        read(io.BytesIO(whole[:cut]))


@pytest.mark.parametrize(
    "answer",
    [
        b"-ERR no\r\n",
        b"$99999999999\r\n",
        b"*99999999999\r\n",
        b":1x\r\n",
        b":%s\r\n" % (b"1" * 20),
        b"*1\r\n" * 20 + b":1\r\n",
        b"?\r\n",
    ],
)
def test_what_is_refused(answer: bytes) -> None:
    with pytest.raises(Refused):
        read(io.BytesIO(answer))


def test_a_null_array_is_none() -> None:
    assert read(io.BytesIO(b"*-1\r\n")) is None


def test_a_client_asks_and_reads() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(1000) == command(("INFO", "replication"))
                connection.sendall(encode("# Replication\r\nrole:master\r\nmaster_repl_offset:42\r\n"))

        thread = threading.Thread(target=serve)
        thread.start()
        client = Client.connect(*server.getsockname(), timeout_s=5)
        found = client.ask("INFO", "replication")
        client.close()
        thread.join()
    assert isinstance(found, str)
    assert fields(found) == {"role": "master", "master_repl_offset": "42"}
