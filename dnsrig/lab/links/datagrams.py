"""Sends datagrams both ways over a link and notes when each left and arrived. No judgement.

Both ends are sockets of this process, each made inside its host's network namespace, so both times are of one clock;
the arrival is the kernel's (SO_TIMESTAMPNS, socket(7)), so it does not matter when we look.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from dnsrig.lab.host import Host, inside
from dnsrig.rundir import Address

PORT = 9
"""discard (RFC 863): nothing else has it on a fresh host."""
HEADER = struct.Struct("!4sI")
MARK = b"drig"
HEADERS_BYTES = {socket.AF_INET: 20 + 8, socket.AF_INET6: 40 + 8}
"""Headers of IPv4 (RFC 791) or IPv6 (RFC 8200), and UDP (RFC 768)."""
PROBING = {socket.AF_INET: (socket.IPPROTO_IP, 10, 3), socket.AF_INET6: (socket.IPPROTO_IPV6, 23, 3)}
"""IP_PMTUDISC_PROBE of IP_MTU_DISCOVER (ip(7)), and the same of IPv6: no packet is cut, and what is known of the path's
MTU does not matter."""
FREEBIND = {socket.AF_INET: (socket.IPPROTO_IP, 15), socket.AF_INET6: (socket.IPPROTO_IPV6, 78)}
"""IP_FREEBIND (ip(7)), IPV6_FREEBIND (linux/in6.h): an address may be in a range, which no interface has."""
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE, SO_SNDBUFFORCE = 33, 32
BUFFER_BYTES = 16 << 20
ANCILLARY_BYTES = 64
LARGEST_BYTES = 1 << 16
UDP_SEGMENT, MOST_SEGMENTS = 103, 32
TIMESPEC = struct.Struct("@ll")


@dataclass
class Way:
    """What went in one direction. Times are CLOCK_REALTIME seconds."""

    sent_s: list[float] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)
    """Sizes of the IP packets."""
    arrived_s: dict[int, float] = field(default_factory=dict)
    """By the packet's number."""
    order: list[int] = field(default_factory=list)
    """The numbers, as they arrived."""
    told_too_large: int = 0
    """How often the sender was notified that a packet was too large."""

    def arrivals(self, numbers: range) -> list[float | None]:
        return [self.arrived_s.get(number) for number in numbers]


@dataclass
class Probe:
    """The two sockets of a link: what one sends, the other receives."""

    left: socket.socket
    right: socket.socket
    forward: Way = field(default_factory=Way)
    reverse: Way = field(default_factory=Way)

    def send(self, way: Way, nbytes: int) -> None:
        """One datagram that makes an IP packet of ``bytes``."""
        sender = self.left if way is self.forward else self.right
        head = HEADER.pack(MARK, len(way.sent_s))
        content = head.ljust(nbytes - HEADERS_BYTES[sender.family], b"\0")
        way.nbytes.append(nbytes)
        way.sent_s.append(time.clock_gettime(time.CLOCK_REALTIME))
        try:
            sender.send(content)
        except OSError as error:
            self._told(way, error)

    def send_at_once(self, way: Way, packets: int, nbytes: int) -> None:
        """So many alike, as fast as the kernel makes them of a few large ones (UDP_SEGMENT, udp(7))."""
        sender = self.left if way is self.forward else self.right
        size = nbytes - HEADERS_BYTES[sender.family]
        most = max(1, min(MOST_SEGMENTS, LARGEST_BYTES // 2 // size))
        control = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", size))]
        while packets > 0:
            count, first = min(packets, most), len(way.sent_s)
            parts = [HEADER.pack(MARK, first + number).ljust(size, b"\0") for number in range(count)]
            way.nbytes += [nbytes] * count
            way.sent_s += [time.clock_gettime(time.CLOCK_REALTIME)] * count
            packets -= count
            try:
                _send_parts(sender, parts, control)
            except OSError as error:
                self._told(way, error)

    def collect(self, until_s: float) -> None:
        """Take in what arrives, until this time of CLOCK_MONOTONIC."""
        while True:
            left_s = until_s - time.monotonic()
            ready, _, _ = select.select([self.left, self.right], [], [], max(0.0, left_s))
            for sock in ready:
                self._drain(sock)
            if left_s <= 0:
                return

    def _drain(self, sock: socket.socket) -> None:
        way, own = (self.reverse, self.forward) if sock is self.left else (self.forward, self.reverse)
        while True:
            try:
                content, ancillary, _, _ = sock.recvmsg(LARGEST_BYTES, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self._told(own, error)
                continue
            mark, number = HEADER.unpack_from(content)
            if mark == MARK and number not in way.arrived_s:
                way.arrived_s[number] = _stamp(ancillary)
                way.order.append(number)

    @staticmethod
    def _told(way: Way, error: OSError) -> None:
        """A datagram that the kernel would not send is one that is lost; that it was too large is counted."""
        if error.errno == errno.EMSGSIZE:
            way.told_too_large += 1
        elif error.errno not in (errno.ENOBUFS, errno.EAGAIN, errno.ECONNREFUSED):
            raise error


@contextlib.contextmanager
def probe(
    left: Host, right: Host, *, at_left: Address | None = None, at_right: Address | None = None
) -> Iterator[Probe]:
    """Sockets on both hosts, gone afterwards; where an address is given, of all of a host's, that end is at it, and the
    other at a free port."""
    ends = ((left, at_left), (right, at_right))
    given = at_left or at_right
    with ExitStack() as stack:
        one, other = (stack.enter_context(_socket(*_end(here, at, given))) for here, at in ends)
        one.connect(other.getsockname()[:2])
        other.connect(one.getsockname()[:2])
        yield Probe(one, other)


def _end(here: Host, at: Address | None, given: Address | None) -> tuple[Host, Address, int]:
    """Choose host, address and port of an end, which may be ``at`` an address; ``given``: the address of either end."""
    if given is None:
        return here, here.address, PORT
    return (here, at, PORT) if at is not None else (here, here.by_version[given.version], 0)


def _send_parts(sender: socket.socket, parts: Sequence[bytes], control: Sequence[tuple[int, int, bytes]]) -> None:
    """All in one system call, or one by one where the kernel cannot cut them.

    Before Linux 6.10 it refuses with EIO over a device without checksums of its own, such as TUN (net/ipv4/udp.c,
    udp_send_skb).
    """
    try:
        sender.sendmsg(parts, control)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        for part in parts:
            sender.send(part)


def _socket(here: Host, at: Address, port: int) -> socket.socket:
    family = socket.AF_INET if at.version == 4 else socket.AF_INET6
    with inside(here.namespace):
        sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    for option in (SO_RCVBUFFORCE, SO_SNDBUFFORCE):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.setsockopt(*PROBING[family])
    sock.setsockopt(*FREEBIND[family], 1)
    sock.bind((str(at), port))
    return sock


def _stamp(ancillary: Sequence[tuple[int, int, bytes]]) -> float:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = TIMESPEC.unpack(data[: TIMESPEC.size])
            return float(seconds + nanoseconds / 1e9)
    return time.clock_gettime(time.CLOCK_REALTIME)
