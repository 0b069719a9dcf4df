"""How the server under test learns of changes: the NOTIFYs that reach its host, and its questions to its primaries.

A packet socket on its host sees both, whatever a server logs. A filter in the kernel drops all other packets, so that
the packets of the instruments cost nothing here.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf

from dnsrig.lab import host
from dnsrig.procedures.context import TrialContext
from dnsrig.servers.keys import XOT_PORT
from dnsrig.servers.placement import DNS_PORT

FOLLOWS_S = 5.0
"""Longest time between a NOTIFY and a question that follows from it: a server may delay it while it asks others."""
BUFFER_BYTES = 4 << 20
"""Size for some thousand packets; a change takes about three, and six over TLS."""
KEPT_BYTES = 512
"""Length that is kept of a packet: headers, and the name in the question."""
IPV4_HEADER_BYTES, IPV6_HEADER_BYTES = 20, 40
UDP_HEADER_BYTES, TCP_HEADER_BYTES, DNS_HEADER_BYTES = 8, 20, 12
LENGTH_BYTES = 2
"""Length before each message over TCP (RFC 1035, 4.2.2). A server that sends it separately is not seen."""
ANY_ZONE = b""
SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 26, 33, 35  # <asm-generic/socket.h>
SOL_PACKET, PACKET_STATISTICS = 263, 6  # <linux/if_packet.h>
ETH_P_ALL = 3
NOTIFY, QR_AND_OPCODE = 0x20, 0xF8
"""In the third byte of a message: opcode 4, and no answer (RFC 1996; RFC 1035, 4.1.1)."""
PSH = 0x08
FILTER = [
    # code, jump if true, jump if false, value: classic BPF, as <linux/filter.h> has it; a packet begins with its IP
    # header.
    (0x30, 0, 0, 0),  # IPv4?
    (0x54, 0, 0, 0xF0),
    (0x15, 0, 5, 0x40),
    (0x28, 0, 0, 6),  # a fragment but the first has no ports
    (0x45, 23, 0, 0x1FFF),
    (0xB1, 0, 0, 0),  # X: length of the IP header
    (0x30, 0, 0, 9),
    (0x05, 0, 0, 3),
    (0x15, 0, 19, 0x60),  # IPv6, without extension headers
    (0x01, 0, 0, IPV6_HEADER_BYTES),
    (0x30, 0, 0, 6),
    (0x15, 6, 0, socket.IPPROTO_TCP),
    (0x15, 0, 15, socket.IPPROTO_UDP),
    (0x48, 0, 0, 2),  # UDP to port 53 ...
    (0x15, 0, 13, DNS_PORT),
    (0x50, 0, 0, 10),  # ... that is a NOTIFY, or sent from here
    (0x54, 0, 0, QR_AND_OPCODE),
    (0x15, 9, 7, NOTIFY),
    (0x48, 0, 0, 2),  # TCP ...
    (0x15, 3, 0, DNS_PORT),
    (0x15, 0, 7, XOT_PORT),
    (0x50, 0, 0, 13),  # ... to port 853, that ends what was written, and is sent from here
    (0x45, 2, 5, PSH),
    (0x50, 0, 0, 13),  # ... to port 53, that ends what was written
    (0x45, 2, 3, PSH),
    (0x30, 0, 0, 0xFFFFF004),  # SKF_AD_OFF + SKF_AD_PKTTYPE
    (0x15, 0, 1, socket.PACKET_OUTGOING),
    (0x06, 0, 0, KEPT_BYTES),
    (0x06, 0, 0, 0),
]


@dataclass(frozen=True)
class Packet:
    time_s: float
    notify: bool
    zone: bytes
    """Name in the question, in wire format; empty for questions over TCP, which may be encrypted."""
    number: int = 0
    """Message id. A NOTIFY without an answer is sent again with the same id."""


@contextmanager
def watched(context: TrialContext) -> Iterator[None]:
    """Record as the summary ``told`` the packets on the host of the server under test while the code inside runs.

    Nothing is recorded if the kernel does not allow it.
    """
    spec = context.spec
    try:
        with host.inside(context.host(spec.subject).namespace):
            seen = packet_socket()
    except OSError:
        yield
        return
    with seen:
        yield
        primaries = {ip_address(spec.hosts[name].address).packed for name in spec.primaries}
        with suppress(OSError):
            found = counted(_packets(seen, primaries))
            _, dropped = struct.unpack("II", seen.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
            context.summaries["told"] = {**found, "dropped": dropped}


def counted(packets: Iterable[Packet]) -> dict[str, int]:
    """Number of distinct NOTIFYs, and of those that a question followed; number of questions, and of those without a
    NOTIFY before."""
    first: dict[tuple[bytes, int], float] = {}
    asked = defaultdict[bytes, list[float]](list)
    for packet in packets:
        if packet.notify:
            first.setdefault((packet.zone, packet.number), packet.time_s)
        else:
            asked[packet.zone].append(packet.time_s)
    told = defaultdict[bytes, list[float]](list)
    for (zone, _), time_s in first.items():
        told[zone].append(time_s)
        told[ANY_ZONE].append(time_s)
    answered = [
        any(_within(asked[name], time_s, time_s + FOLLOWS_S) for name in (zone, ANY_ZONE))
        for (zone, _), time_s in first.items()
    ]
    prompted = [_within(told[zone], time_s - FOLLOWS_S, time_s) for zone, times in asked.items() for time_s in times]
    return {
        "notifies": len(first),
        "followed": sum(answered),
        "questions": len(prompted),
        "unprompted": len(prompted) - sum(prompted),
    }


def _within(times: Sequence[float], first: float, last: float) -> bool:
    """Whether one of the sorted ``times`` is between ``first`` and ``last``."""
    return next(iter(times[bisect_left(times, first) :][:1]), inf) <= last


def packet_of(data: bytes, time_s: float, primaries: set[bytes]) -> Packet | None:
    """A packet that ``FILTER`` accepted; None if it is neither a NOTIFY nor a question to a primary.

    >>> query = bytes.fromhex("4500002d 0000 0000 40110000 c6120002 c6120001 30390035 00190000") + bytes.fromhex(
    ...     "0007 2000 0001000000000000 0161 00 0006 0001")
    >>> packet_of(query, 1.5, set())
    Packet(time_s=1.5, notify=True, zone=b'\\x01a', number=7)

    Over TCP, as Knot DNS has it:

    >>> header = "30390035 00000000 00000000 50180000 00000000"
    >>> tcp = query[:9] + b"\\6" + query[10:20] + bytes.fromhex(f"{header} 0013")
    >>> packet_of(tcp + query[28:], 1.5, set())
    Packet(time_s=1.5, notify=True, zone=b'\\x01a', number=7)

    Over IPv6:

    >>> addresses = "20010002 00000000 00000000 00000001 20010002 00000000 00000000 00000002"
    >>> packet_of(bytes.fromhex(f"60000000 0019 1140 {addresses}") + query[20:], 1.5, set())
    Packet(time_s=1.5, notify=True, zone=b'\\x01a', number=7)
    """
    if len(data) < IPV4_HEADER_BYTES:
        return None
    if data[0] >> 4 == 4:
        protocol, destination, start = data[9], data[16:20], 4 * (data[0] & 15)
    else:
        protocol, destination, start = data[6], data[24:40], IPV6_HEADER_BYTES
    is_question = destination in primaries
    if protocol == socket.IPPROTO_UDP:
        message = data[start + UDP_HEADER_BYTES :]
    elif is_question:
        return Packet(time_s, False, ANY_ZONE)
    else:
        tcp_header = data[start : start + TCP_HEADER_BYTES].ljust(TCP_HEADER_BYTES, b"\0")
        message = data[start + 4 * (tcp_header[12] >> 4) + LENGTH_BYTES :]
    zone, end, _ = message[DNS_HEADER_BYTES:].lower().partition(b"\0")
    if not end:
        return None
    if message[2] & QR_AND_OPCODE == NOTIFY:
        return Packet(time_s, True, zone, int.from_bytes(message[:2]))
    return Packet(time_s, False, zone) if is_question else None


def packet_socket() -> socket.socket:
    """A socket that keeps NOTIFYs and sent questions, in the network namespace of the calling thread.

    Raises OSError if the kernel has no packet sockets.
    """
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    program = (ctypes.c_char * (8 * len(FILTER))).from_buffer_copy(
        b"".join(struct.pack("HBBI", *step) for step in FILTER)
    )
    made.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HxxxxxxP", len(FILTER), ctypes.addressof(program))
    )
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    for _ in received(made):
        pass  # arrived before the filter was set
    return made


def _packets(seen: socket.socket, primaries: set[bytes]) -> Iterator[Packet]:
    """All that the kernel kept for ``seen``, in order; its buffer is their limit."""
    for data, ancillary in received(seen):
        times = [struct.unpack("qq", value) for _, kind, value in ancillary if kind == SO_TIMESTAMPNS]
        seconds, nanoseconds = times[0] if times else (0, 0)
        if (packet := packet_of(data, seconds + nanoseconds / 1e9, primaries)) is not None:
            yield packet


def received(seen: socket.socket) -> Iterator[tuple[bytes, list[tuple[int, int, bytes]]]]:
    """All packets that wait in ``seen``, with their ancillary data."""
    with suppress(BlockingIOError):
        while True:
            data, ancillary, _, _ = seen.recvmsg(KEPT_BYTES, socket.CMSG_SPACE(16), socket.MSG_DONTWAIT)
            yield data, ancillary
