"""The DNSSEC level of a resolver, as it is seen: on a twin before the measurement, and on itself afterwards."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dnsrig.datasets.world import BROKEN
from dnsrig.lab import addresses, host
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import notifies
from dnsrig.rundir import OBSERVER, TrialSpec
from dnsrig.servers import driver_of
from dnsrig.servers.placement import DNS_PORT
from dnsrig.servers.resolving import AsResolver

ANSWER_LIMIT_S = 3.0
TRIES = 3
COUNTED_S = 1.0
"""A world counts queries by the second."""
MOST_BYTES = 4096
OPT_TYPE, DO = 41, 0x8000
SOA_TYPE, PTR_TYPE = 6, 12
OPT = b"\0" + OPT_TYPE.to_bytes(2) + (1232).to_bytes(2) + b"\0\0" + DO.to_bytes(2) + b"\0\0"


@dataclass(frozen=True)
class Question:
    name: str
    type: int = SOA_TYPE


@dataclass(frozen=True)
class Names:
    """The questions for a resolver."""

    good: Question
    broken: Question | None = None
    """A question that a validating resolver does not answer."""


def able(spec: TrialSpec) -> AsResolver | None:
    """How the server under test resolves; None if it is not a resolver, or has no levels."""
    subject = spec.hosts[spec.subject]
    if subject.role != "resolver" or subject.server is None:
        return None
    return driver_of(subject.server).as_resolver


def names(context: TrialContext) -> Names:
    if context.spec.world is not None:
        # The reverse zones of a world are always signed, and so are those above them.
        return Names(Question(addresses.HOSTS.ipv4[1].reverse_pointer, PTR_TYPE), Question(BROKEN))
    zone = context.servers.placements[context.spec.primaries[0]].zones[0]
    return Names(Question(zone.name))


def ask_twin(context: TrialContext, *, limit_s: float) -> None:
    """Start a twin, ask it, and end it."""
    name = context.spec.subject
    with _upstream(context, name) as upstream, context.twin(name, "twin", limit_s=limit_s):
        found = _asked(context, name)
    context.summaries["level"] = {"twin": {**found, **upstream}}


def ask_itself(context: TrialContext) -> None:
    """Ask the measured server, after the last second in which a world counted its questions for clients."""
    if "level" in context.summaries:
        if context.spec.world is not None:
            time.sleep(COUNTED_S)
        context.summaries["level"]["server"] = _asked(context, context.spec.subject)


def _asked(context: TrialContext, name: str) -> dict[str, Any]:
    asked, address = names(context), str(context.host(name).address)
    with host.inside(context.host(OBSERVER).namespace):
        connection = socket.socket(context.host(name).family, socket.SOCK_DGRAM)
    with connection:
        connection.settimeout(ANSWER_LIMIT_S)
        connection.connect((address, DNS_PORT))
        found = {"good": _answer(connection, asked.good)}
        if asked.broken is not None:
            found["broken"] = _answer(connection, asked.broken)
    return found


def _answer(connection: socket.socket, question: Question) -> dict[str, Any]:
    """RCODE, AD and the number of records of the answer; empty without an answer."""
    for number in range(1, TRIES + 1):
        query = query_of(question, number)
        with suppress(OSError):
            connection.send(query)
            while len(answer := connection.recv(MOST_BYTES)) < 12 or answer[:2] != query[:2]:
                pass  # the answer to an earlier try
            records = int.from_bytes(answer[6:8])
            return {"rcode": answer[3] & 15, "ad": bool(answer[3] & 0x20), "records": records}
    return {}


def query_of(question: Question, number: int) -> bytes:
    """A query with RD, AD and DO.

    >>> query_of(Question("a.example."), 7).hex(" ", -4)
    '00070120 00010000 00000001 01610765 78616d70 6c650000 06000100 002904d0 00008000 0000'
    """
    labels = [label.encode() for label in question.name.rstrip(".").split(".") if label]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return number.to_bytes(2) + b"\1\x20\0\1\0\0\0\0\0\1" + name + question.type.to_bytes(2) + b"\0\1" + OPT


@contextmanager
def _upstream(context: TrialContext, name: str) -> Iterator[dict[str, int]]:
    """Number of queries that the host sends over UDP to port 53 while the code inside runs, with EDNS, and with DO.

    Empty if the kernel has no packet sockets. The kernel keeps no other packets, of which a server that starts slowly
    gets thousands from `probe`.
    """
    found: dict[str, int] = {}
    try:
        with host.inside(context.host(name).namespace):
            seen = notifies.packet_socket()
    except OSError:
        yield found
        return
    with seen:
        yield found
        sent = [edns for data, _ in notifies.received(seen) if (edns := edns_of(data)) is not None]
        found |= {"queries": len(sent), "edns": sum("edns" in told for told in sent)}
        found["do"] = sum("do" in told for told in sent)


def edns_of(packet: bytes) -> frozenset[str] | None:
    """Which of ``edns`` and ``do`` a query over UDP to port 53 has; None for any other packet.

    >>> query = query_of(Question("a."), 1)
    >>> ip = bytes.fromhex("45000000 00000000 40110000 c6120002 c6120001 30390035 00000000")
    >>> sorted(edns_of(ip + query)), sorted(edns_of(ip + query[:-4] + bytes(4))), edns_of(ip[:-5] + b"\\x36" + query)
    (['do', 'edns'], ['edns'], None)
    """
    if len(packet) < 20:
        return None
    version = packet[0] >> 4
    protocol, start = (packet[9], 4 * (packet[0] & 15)) if version == 4 else (packet[6], 40)
    message = packet[start + 8 :]
    if protocol != socket.IPPROTO_UDP or int.from_bytes(packet[start + 2 : start + 4]) != DNS_PORT:
        return None
    if len(message) < 12 or message[2] & 0x80 or message[4:6] != b"\0\1":
        return None
    at = 12
    while at < len(message) and message[at]:
        at += 1 + message[at]
    options = message[at + 5 :]
    if options[:3] != OPT[:3] or len(options) < 9:
        return frozenset()
    return frozenset({"edns", "do"} if int.from_bytes(options[7:9]) & DO else {"edns"})
