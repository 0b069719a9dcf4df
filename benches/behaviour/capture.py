"""All packets of a network namespace's loopback, and the conversations in them."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from dataclasses import dataclass, field

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_STATISTICS, PACKET_VNET_HDR = 263, 6, 15
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 256 << 20
VNET_HDR, ETHERNET_BYTES = struct.Struct("<BBHHHH"), 14
GSO_UDP_L4 = 5
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
FIN, SYN, RST = 1, 2, 4
QUIET_S = 0.05

Address = tuple[str, int]


@dataclass
class Stream:
    """One direction of a conversation."""

    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    """When a piece came, as the number of its packet, and what. A datagram each, or a TCP segment without what is
    known."""
    end: str = "open"
    """How TCP's direction ended: `fin`, `rst` or not at all."""
    first: int | None = None
    known: int = 0
    early: dict[int, bytes] = field(default_factory=dict)
    """Segments that were captured before their predecessor, which another CPU had sent."""

    def segment(self, number: int, sequence: int, payload: bytes) -> None:
        assert self.first is not None
        self.early[(sequence - self.first) & 0xFFFFFFFF] = payload
        while due := [at for at in self.early if at <= self.known]:
            if fresh := self.early.pop(due[0])[self.known - due[0] :]:
                self.pieces.append((number, fresh))
                self.known += len(fresh)


@dataclass
class Conversation:
    """What two sockets said to each other. The client is who spoke first."""

    protocol: str
    client: Address
    server: Address
    asked: Stream = field(default_factory=Stream)
    answered: Stream = field(default_factory=Stream)


def own_network() -> None:
    """Move this process into a network namespace of its own, whose loopback is up."""
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace of its own: run it as root")
    from pyroute2 import IPRoute

    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="lo")[0], state="up")


class Capture:
    """Records from when it is made until `conversations`."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        # Datagrams that the kernel cuts late (UDP_SEGMENT) come as one packet: its header says where to cut.
        self._socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(QUIET_S)
        self._packets: list[bytes] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._record)
        self._thread.start()

    def conversations(self) -> list[Conversation]:
        """End, and sort the packets: by conversation, and the conversations by their first packets."""
        self._over.set()
        self._thread.join()
        dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self._socket.close()
        if dropped:
            raise RuntimeError(f"the capture lost {dropped} packets")
        return conversations(self._packets)

    def _record(self) -> None:
        while True:
            try:
                packet, address = self._socket.recvfrom(1 << 18)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            # Over loopback each packet is seen twice: as it leaves and as it comes.
            if address[2] != PACKET_OUTGOING:
                self._packets.append(packet)


def conversations(packets: list[bytes]) -> list[Conversation]:
    """Of packets with a virtio and an Ethernet header."""
    open_now: dict[tuple[str, Address, Address], Conversation] = {}
    found: list[Conversation] = []
    for number, packet in enumerate(packets):
        _, gso_type, _, gso_size, _, _ = VNET_HDR.unpack_from(packet)
        ip = packet[VNET_HDR.size + ETHERNET_BYTES :]
        if ip[0] >> 4 != 4 or ip[9] not in (socket.IPPROTO_UDP, socket.IPPROTO_TCP):
            continue
        protocol = "tcp" if ip[9] == socket.IPPROTO_TCP else "udp"
        ip, at = ip[: int.from_bytes(ip[2:4], "big")], (ip[0] & 15) * 4
        ports = struct.unpack_from(">HH", ip, at)
        source, target = ((socket.inet_ntoa(ip[12 + 4 * end : 16 + 4 * end]), ports[end]) for end in (0, 1))
        is_first = protocol == "tcp" and ip[at + 13] & SYN and not ip[at + 13] & 16
        talk = open_now.get((protocol, source, target))
        if talk is None or is_first:
            talk = Conversation(protocol, source, target)
            open_now[protocol, source, target] = open_now[protocol, target, source] = talk
            found.append(talk)
        stream = talk.asked if talk.client == source else talk.answered
        if protocol == "udp":
            payload = ip[at + 8 :]
            size = gso_size if gso_type == GSO_UDP_L4 else max(len(payload), 1)
            stream.pieces += [(number, payload[start : start + size]) for start in range(0, len(payload), size)]
        else:
            _tcp(stream, number, ip[at:])
    if any(talk.asked.early or talk.answered.early for talk in found):
        raise RuntimeError("a TCP segment is missing in the capture")
    return found


def _tcp(stream: Stream, number: int, segment: bytes) -> None:
    sequence, flags = int.from_bytes(segment[4:8], "big"), segment[13]
    if flags & SYN:
        stream.first = sequence + 1
    elif payload := segment[(segment[12] >> 4) * 4 :]:
        stream.segment(number, sequence, payload)
    if stream.end == "open" and flags & (FIN | RST):
        stream.end = "rst" if flags & RST else "fin"
