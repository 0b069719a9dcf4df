"""A server that runs already: ``running@192.0.2.53:53``. dnsrig asks it, and starts, configures and stops nothing.

Its ports follow its address, if they differ: ``running@192.0.2.53:5300,tcp=5301,dot=8853``. The port behind the address
is for UDP, and for TCP unless ``tcp`` names another one. DNS over TLS and QUIC have port 853, and DNS over HTTPS has
port 443, unless ``dot``, ``doq`` or ``doh`` names another one. Without a port it is 53. An IPv6 address with a port has
brackets: ``running@[2001:db8::53]:53``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from dnsrig import engine
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import Address
from dnsrig.servers.driver import Driver
from dnsrig.servers.placement import DNS_PORT, Placement

UNKNOWN = "unknown"
"""The version of a server that does not report one."""
DOT_PORT = 853
"""Port of DNS over TLS, and over QUIC (RFC 7858 §3.1, RFC 9250 §4.1.1)."""
DOH_PORT = 443
PORT_MOST = 65_535
IDENTIFY_LIMIT_S = 30.0
"""Longer than the engine waits for three transports, on a machine with much to do."""
EXAMPLES = "e.g. running@192.0.2.53:53, running@[2001:db8::53]:53 or running@127.0.0.1:5300,dot=8853"
PLACE = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[0-9.]+))(?::(?P<port>\d{1,5}))?")
TRANSPORTS = {
    "udp": "UDP",
    "tcp": "TCP",
    "dot": "DNS over TLS",
    "doh": "DNS over HTTPS",
    "doq": "DNS over QUIC",
}
LOOKED_FOR = ("dot", "doh")
"""Transports for which a connection is opened; a server may log the connection that says nothing."""


class Running(Driver):
    """The kind of a server that dnsrig did not start: its program, version and settings are not known."""

    kind = "running"
    title = "a running server"
    executable = ""
    packages = ()
    roles = ("primary", "secondary", "resolver")
    settings = ()
    version_arguments = ()
    version_pattern = r"(?!)"
    log_clock_resolution_ns = 1

    def configure(self, placement: Placement) -> None:
        raise NotImplementedError


RUNNING = Running()


@dataclass(frozen=True)
class Listening:
    """Where a server listens."""

    address: Address
    ports: Mapping[str, int]
    """Transport (`udp`, `tcp`, `dot`, `doh`, `doq`) -> port."""


def parse(source: str) -> Listening:
    """``192.0.2.53:5300,dot=8853``. Raises UsageError on anything else."""
    place, *others = source.split(",")
    found = PLACE.fullmatch(place)
    try:
        address = ip_address((found["six"] or found["four"]) if found else place)
    except ValueError:
        raise UsageError(f"running@{source} names no address of a server", hint=EXAMPLES) from None
    port = _port(source, found["port"]) if found and found["port"] else DNS_PORT
    ports = {"udp": port, "tcp": port, "dot": DOT_PORT, "doh": DOH_PORT, "doq": DOT_PORT}
    for other in others:
        name, _, number = other.partition("=")
        if name not in ("tcp", "dot", "doh", "doq"):
            raise UsageError(f"running@{source}: {other!r} is not the port of a transport", hint=EXAMPLES)
        ports[name] = _port(source, number)
    return Listening(address, ports)


def _port(source: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= PORT_MOST:
        raise UsageError(f"running@{source}: {text!r} is not a port", hint=EXAMPLES)
    return int(text)


def identify(
    address: str, ports: Mapping[str, int], *, authorized: bool, transports: Collection[str]
) -> dict[str, Any]:
    """The version that a server reports, and the transports over which it answers: the summary of `probe identify`.

    ``transports``: the ones to look for, beside UDP and TCP. Raises DnsrigError if the server must not be asked.
    """
    words = [
        "probe",
        "identify",
        endpoint(address, ports["udp"]),
        f"--tcp-port={ports['tcp']}",
        *(f"--{name}-port={ports[name]}" for name in LOOKED_FOR if name in transports),
        *([f"--i-am-authorized={address}"] if authorized else []),
    ]
    try:
        return engine.summary(words, "the running server cannot be asked", limit_s=IDENTIFY_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise DnsrigError(f"asking the running server at {address} took more than {IDENTIFY_LIMIT_S:g} s") from None


def endpoint(address: str, port: int) -> str:
    """``192.0.2.53:53`` or ``[2001:db8::53]:53``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def version(found: Mapping[str, Any]) -> str:
    """The version that a server reports (``version.bind``), or `UNKNOWN`."""
    return str(found.get("version") or UNKNOWN)


def why_silent(found: Mapping[str, Any], transport: str, where: str) -> tuple[str, str]:
    """Why a server cannot be measured over ``transport``, and a hint; two empty texts if it answers there.

    ``found``: from `identify`; ``where``: address and port of the transport.
    """
    name, state = TRANSPORTS[transport], found.get(transport)
    if state in ("answers", "open") or transport == "doq":
        # Nobody has asked over QUIC: a load shows whether the server answers.
        return "", ""
    if state == "elsewhere":
        return (
            f"the server at {where} answers from another address, {found.get('answered_from')}, and clients drop that",
            "let it answer from the address that was asked (Unbound: interface-automatic), or name that address",
        )
    if state == "refused":
        others = [TRANSPORTS[other] for other in TRANSPORTS if found.get(other) in ("answers", "open")]
        also = f"; it answers over {' and '.join(others)}" if others else ""
        return f"no server listens at {where} over {name}{also}", "start it, or correct the address and the port"
    return (
        f"the server at {where} does not answer over {name}",
        "does it run, and do its access list and the firewalls on the way let this machine ask?",
    )
