"""The TCP listeners of a Dask cluster, and the ones that let in everybody who reaches them.

Each process of the cluster is asked for its own listeners, because the scheduler knows only the addresses at which its
workers can be reached: a worker that is known as ``tcp://127.0.0.1:4711`` may listen on every address of its machine,
and the HTTP servers of Dask ask for no certificate. Whether a listener asks for one is tried, not read from settings.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from dnsrig.errors import DnsrigError, UsageError

ANSWER_LIMIT_S = 5.0
"""Dask's HTTP server never answers to TLS. An event loop that answers may be busy for a second."""
ASKS = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
"""How OpenSSL calls the alert of a server to a client that has no certificate (RFC 8446 §4.4.2.4 and §6.2)."""
HINT = (
    "start scheduler and workers with files of `dnsrig machines certificates` and with "
    "--dashboard-address 127.0.0.1:0, as docs/how-to/machines.md shows"
)


class NotKnown(DnsrigError):
    """A process did not say what it listens on."""


def check(client: Any, workers: Mapping[str, Mapping[str, Any]], scheduler: str = "") -> None:
    """Refuse open listeners of ``workers`` and their nannies, and of the scheduler if its address is given.

    ``workers`` is what the scheduler knows about them, by address. Raises `NotKnown` if a process does not answer.
    """
    nannies = {address: told for address, told in workers.items() if told.get("nanny")}
    found = list[str]()
    for kind, known in (("worker", workers), ("nanny", nannies)):
        answers = client.run(open_here, workers=[*known], nanny=kind == "nanny", on_error="return")
        for address, told in known.items():
            reached = told["nanny"] if kind == "nanny" else address
            found += exposed(f"{kind} {told['name']}", reached, answers.get(address))
    if scheduler:
        found += exposed("scheduler", scheduler, _asked_scheduler(client))
    if found:
        raise UsageError(
            f"other machines can connect to this cluster without a certificate: {', '.join(found)}", hint=HINT
        )


def exposed(process: str, reached: str, answer: list[str] | Exception | None) -> list[str]:
    """The open listeners of a process, each with the name of the process.

    ``answer`` is what `open_here` returns there. ``reached`` is the address that the scheduler knows. It counts, too,
    if no listener of the process has its port: then something else passes connections on.
    """
    if not isinstance(answer, list):
        raise NotKnown(
            f"the listeners of the {process} are not known: {answer or 'it does not answer'}",
            hint="all processes of a cluster need the same wheel of dnsrig: install it there, and start them again",
        ) from answer
    parts = urlsplit(reached)
    is_safe = parts.scheme == "tls" or is_loopback(parts.hostname or "")
    is_named = any(one.endswith(f":{parts.port}") for one in answer)
    return [f"{one} ({process})" for one in [*answer, *([] if is_safe or is_named else [reached])]]


def _asked_scheduler(client: Any) -> list[str] | Exception:
    try:
        found: list[str] = client.run_on_scheduler(open_here)
        return found
    except Exception as error:
        return error


async def open_here() -> list[str]:
    """The listeners of the process that calls this to which any machine can connect without a certificate."""
    return await asyncio.to_thread(lambda: [joined(*one) for one in _listening() if is_open(*one)])


def is_open(host: str, port: int) -> bool:
    """Whether a listener of this machine accepts connections from another machine without a certificate."""
    if is_loopback(host):
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    any_address = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    try:
        with (
            socket.create_connection((any_address.get(host, host), port), ANSWER_LIMIT_S) as connection,
            context.wrap_socket(connection) as secured,
        ):
            secured.recv(1)  # with TLS 1.3, the server refuses after the handshake of the client
    except ssl.SSLError as error:
        return error.reason != ASKS
    except OSError:
        return True
    return True


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listening() -> Iterator[tuple[str, int]]:
    import psutil  # type: ignore[import-untyped]

    sockets = psutil.Process().net_connections("tcp")
    yield from sorted({(one.laddr.ip, one.laddr.port) for one in sockets if one.status == psutil.CONN_LISTEN})
