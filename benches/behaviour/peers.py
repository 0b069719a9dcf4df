"""Who talks with the engine beside the engine: clients and servers of which every message is known."""

from __future__ import annotations

import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dnsrig.servers import keys

SERVER = "127.0.0.1"


def over_udp(messages: Iterable[bytes], port: int = 53, timeout_s: float = 5.0) -> None:
    """One after the other, each when the one before is answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(timeout_s)
        client.connect((SERVER, port))
        for message in messages:
            client.send(message)
            client.recv(65536)


def over_stream(messages: Iterable[bytes], port: int = 53, tls: bool = False, limit: int = 1 << 30) -> list[bytes]:
    """All in one write; what comes until the server has closed, or so many bytes were read."""
    found = []
    with socket.create_connection((SERVER, port), timeout=20) as plain:
        client = _client_tls(plain) if tls else plain
        client.sendall(b"".join(struct.pack(">H", len(message)) + message for message in messages))
        if tls:
            assert isinstance(client, ssl.SSLSocket)
            client.settimeout(0.5)
        else:
            client.shutdown(socket.SHUT_WR)
        while limit > 0:
            try:
                piece = client.recv(65536)
            except (ConnectionResetError, TimeoutError):
                break
            if not piece:
                break
            found.append(piece)
            limit -= len(piece)
    return found


def _client_tls(plain: socket.socket) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["dot"])
    return context.wrap_socket(plain)


@contextmanager
def answering(port: int, answer: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """A server over UDP whose answers a function decides."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((SERVER, port))
        server.settimeout(0.05)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    message, peer = server.recvfrom(65536)
                except TimeoutError:
                    continue
                if (reply := answer(message)) is not None:
                    server.sendto(reply, peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def without_tls(port: int, target: int) -> Iterator[None]:
    """Takes TLS off: each connection to `port` goes on in plain TCP to `target`, so that its messages can be seen."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["dot"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys.make().write(folder, private=True)
        context.load_cert_chain(folder / keys.CERTIFICATE_FILE, folder / keys.PRIVATE_KEY_FILE)
    with socket.create_server((SERVER, port)) as listener:

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_relay, args=(client, context, target)).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _relay(client: socket.socket, context: ssl.SSLContext, target: int) -> None:
    try:
        with (
            context.wrap_socket(client, server_side=True) as outside,
            socket.create_connection((SERVER, target)) as inside,
        ):
            back = threading.Thread(target=_copy, args=(inside, outside))
            back.start()
            _copy(outside, inside)
            inside.shutdown(socket.SHUT_WR)
            back.join()
    except OSError:
        pass  # The client closed in its own way.


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
    except OSError:
        pass
