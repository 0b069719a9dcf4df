"""Listens, and says where."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import uvicorn

from dnsrig.browse import security, vega
from dnsrig.browse.app import application
from dnsrig.browse.connections import MOST_AT_ONCE, Connection
from dnsrig.browse.security import Access
from dnsrig.errors import DnsrigError

END_LIMIT_S = 2


def serve(root: Path, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Answer until interrupted. ``tell`` gets the address when connections are accepted. Raises DnsrigError where the
    port cannot be had."""
    listening = listen(host, port)
    access = Access(security.new_token(), host, listening.getsockname()[1])
    threading.Thread(target=vega.bundle, daemon=True).start()  # ready when the first chart wants it
    app = application(root, access)
    config = uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=END_LIMIT_S,
    )
    tell(access.url)
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections there; port 0 takes a free one. Raises DnsrigError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        raise DnsrigError(
            f"cannot listen on {host} port {port}: {error.strerror}", hint="--port 0 takes a free one"
        ) from error
    return found
