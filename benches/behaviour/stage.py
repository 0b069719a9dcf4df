"""Programs of one engine in one network namespace, and what is kept of them for the comparison."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dnsrig.servers import keys

from .capture import Capture
from .records import events, histograms, rows
from .wire import View, lines

LIMIT_S = 60.0
WERE = {"propagation": "probe propagation", "interrogate": "transfer --interrogate"}
"""Subcommand → what it was: for engines whose help does not name it."""
SERVER = "127.0.0.1"
EXACT = View()


class Stage:
    """Where a run plays. Everything that it keeps goes into `kept`: lines under a title."""

    def __init__(self, engine: Path, seed: int, folder: Path) -> None:
        self.engine, self.seed, self.folder = engine, seed, folder
        self.kept: dict[str, list[str]] = {}
        self._help = subprocess.run([engine, "--help"], check=True, capture_output=True, text=True).stdout

    def keep(self, title: str, content: Iterable[str]) -> None:
        assert title not in self.kept, title
        self.kept[title] = list(content)

    def keep_rows(self, title: str, folder: str = ".", **how: Mapping[str, object]) -> None:
        """Of all row files and histograms in a folder; how each is compared, by its name."""
        for file in sorted((self.folder / folder).iterdir()):
            name = f"{title}: {file.name}"
            if file.suffix == ".arrow":
                self.keep(name, rows(file, **how.get(file.stem.replace("-", "_"), {})))  # type: ignore[arg-type]
            elif file.suffix == ".hlog":
                self.keep(name, histograms(file))

    @contextmanager
    def wire(self, title: str, view: View = EXACT) -> Iterator[None]:
        """Keep what is on the wire meanwhile."""
        capture = Capture()
        try:
            yield
        finally:
            conversations = capture.conversations()
        self.keep(f"{title}: wire", lines(conversations, view))

    def run(self, title: str, command: str, values: bool = True, interrupt_after_s: float | None = None) -> None:
        """A subcommand until it ends; its events and its exit code. `values`: else only what keys the events have."""
        with self._process(command) as process:
            if interrupt_after_s is not None:
                time.sleep(interrupt_after_s)
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=LIMIT_S)
        self._ended(title, output, process.returncode, values)

    @contextmanager
    def serving(self, title: str, command: str, values: bool = True) -> Iterator[subprocess.Popen[str]]:
        """A subcommand that says when it is ready, and ends with its standard input."""
        with self._process(f"{command} --until-eof") as process:
            assert process.stdout is not None and process.stdin is not None
            output = ""
            for line in process.stdout:
                output += line
                if json.loads(line)["event"] == "ready":
                    break
            else:
                raise RuntimeError(f"{command} is not ready: {(self.folder / 'errors.txt').read_text()[-300:]}")
            yield process
            rest, _ = process.communicate(timeout=LIMIT_S)
            self._ended(title, output + rest, process.returncode, values)

    def _ended(self, title: str, output: str, code: int | None, values: bool = True) -> None:
        for name, content in events(output, values).items():
            self.keep(f"{title}: {name}", content)
        self.keep(f"{title}: exit code", [str(code)])

    @contextmanager
    def _process(self, command: str) -> Iterator[subprocess.Popen[str]]:
        name, _, options = command.partition(" ")
        if name in WERE and f"\n  {name} " not in self._help:
            command = f"{WERE[name]} {options}"
        words = [str(self.engine), *shlex.split(command)]
        with (self.folder / "errors.txt").open("a") as errors:
            process = subprocess.Popen(
                words, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()


def over_udp(messages: Iterable[bytes], port: int = 53, timeout_s: float = 5.0) -> None:
    """One after the other, each when the one before is answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(timeout_s)
        client.connect((SERVER, port))
        for message in messages:
            client.send(message)
            client.recv(65536)


def over_stream(messages: Iterable[bytes], port: int = 53, tls: bool = False, limit: int = 1 << 30) -> list[bytes]:
    """All in one write; what comes until the server has closed, or so many octets were read."""
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
