"""Captures of the same queries, as foreign tools write them: scapy and dpkt."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import cbor2
import dns.message
import dpkt
from scapy.config import conf
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert, fragment
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    PadN,
    fragment6,
)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgWriter

conf.verb = 0

SERVER, SERVER_V6 = "192.0.2.53", "2001:db8::53"
ELSEWHERE = "198.51.100.7"
START_NS = 1_700_000_000_000_000_000
RESOLUTION_NS = 1000
"""Times are whole microseconds: so every format can say them."""


@dataclass(frozen=True)
class Query:
    """What a client asked."""

    time_ns: int
    client: str
    port: int
    wire: bytes
    server: str = SERVER


def message(name: str, kind: str = "A", number: int = 1, **options: Any) -> bytes:
    made = dns.message.make_query(name, kind, id=number, **options)
    return made.to_wire()


def queries(v6: bool = False) -> list[Query]:
    """Of three clients; the second asks something again, and one message is long."""
    wire = [
        message("www.example.com", number=1),
        message("a.example", "AAAA", number=2, want_dnssec=True),
        message("a.example", "AAAA", number=2, want_dnssec=True),
        message("padded.example", "HTTPS", number=4, use_edns=0, pad=468),
        message(".", "NS", number=5),
    ]
    when_us = [0, 1500, 1_001_500, 1_001_500, 2_000_000]
    hosts = [1, 2, 2, 3, 1]
    prefix, server = ("2001:db8::1:", SERVER_V6) if v6 else ("203.0.113.", SERVER)
    return [
        Query(START_NS + us * 1000, f"{prefix}{host}", 40_000 + host, bytes_, server)
        for us, host, bytes_ in zip(when_us, hosts, wire)
    ]


def expected(found: Iterable[Query], tcp: bool = False) -> bytes:
    """The stream of these queries, made without the engine: over UDP, or over TCP, each on a connection of its own."""
    records, clients = b"", {}
    given, seen = sorted(found, key=lambda query: query.time_ns), set()
    first_ns = given[0].time_ns
    for query in given:
        client = clients.setdefault(query.client, len(clients))
        again = (query.client, query.port, query.wire) in seen
        seen.add((query.client, query.port, query.wire))
        transport, flags = (1, 2) if tcp else (0, 1 if again else 0)
        head = struct.pack("<qIHBB", query.time_ns - first_ns, client, len(query.wire), transport, flags)
        records += head + query.wire + bytes(-len(query.wire) % 8)
    duration_ns = given[-1].time_ns - first_ns
    head = struct.pack("<8sIIQQqqQQ", b"DNSRSTRM", 1, 64, len(given), len(clients), first_ns, duration_ns, 0, 0)
    return head + records


def datagram(query: Query) -> Packet:
    network = (
        IPv6(src=query.client, dst=query.server) if ":" in query.client else IP(src=query.client, dst=query.server)
    )
    return network / UDP(sport=query.port, dport=53) / Raw(query.wire)


def frame(packet: Packet) -> bytes:
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet)


Written = list[tuple[int, bytes]]
"""Times and packets."""


def pcap(packets: Written, link: int = 1, big: bool = False, nano: bool = False) -> bytes:
    """By dpkt."""
    if big:
        # dpkt writes the byte order of the machine.
        text = struct.pack(">IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
        for when_ns, packet in packets:
            part = when_ns % 10**9 // (1 if nano else 1000)
            text += struct.pack(">IIII", when_ns // 10**9, part, len(packet), len(packet)) + packet
        return text
    output = io.BytesIO()
    writer = dpkt.pcap.Writer(output, linktype=link, nano=nano)
    for when_ns, packet in packets:
        writer.writepkt_time(packet, _decimal(when_ns))
    return output.getvalue()


def pcapng(packets: Written) -> bytes:
    """By dpkt: one interface of Ethernet, times in microseconds."""
    output = io.BytesIO()
    writer = dpkt.pcapng.Writer(output)
    for when_ns, packet in packets:
        writer.writepkt(packet, ts=when_ns / 1e9)
    return output.getvalue()


def pcapng_big(packets: Written) -> bytes:
    """In the byte order that dpkt does not write here, times in nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack(">II", kind, len(body) + 12) + body + struct.pack(">I", len(body) + 12)

    text = block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1))
    text += block(1, struct.pack(">HHIHHB3xHH", 1, 0, 0, 9, 1, 9, 0, 0))
    for when_ns, packet in packets:
        text += block(
            6, struct.pack(">IIIII", 0, when_ns >> 32, when_ns & 0xFFFFFFFF, len(packet), len(packet)) + packet
        )
    return text


def pcapng_by_scapy(path: Path, packets: Written) -> None:
    with PcapNgWriter(str(path)) as writer:
        for when_ns, packet in packets:
            made = Ether(packet)
            made.time = _decimal(when_ns)
            writer.write(made)


def _field(number: int, value: int | bytes) -> bytes:
    """A field of protocol buffers."""

    def varint(rest: int) -> bytes:
        return bytes([rest & 0x7F | 0x80]) + varint(rest >> 7) if rest > 0x7F else bytes([rest])

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def dnstap(found: list[Query], kind: int = 5) -> bytes:
    """CLIENT_QUERY messages, each followed by its CLIENT_RESPONSE, in a frame stream."""

    def frame_of(query: Query, kind: int) -> bytes:
        client, server = ip_address(query.client), ip_address(query.server)
        seconds, part_ns = divmod(query.time_ns, 10**9)
        message = _field(1, kind) + _field(2, 1 if client.version == 4 else 2) + _field(3, 1)
        message += _field(4, client.packed) + _field(5, server.packed) + _field(6, query.port) + _field(7, 53)
        message += _field(8, seconds) + b"\x4d" + struct.pack("<I", part_ns) + _field(10, query.wire)
        return _field(1, b"a server") + _field(15, 1) + _field(14, message)

    kind_of_content = b"protobuf:dnstap.Dnstap"
    text = struct.pack(">IIIII", 0, 12 + len(kind_of_content), 2, 1, len(kind_of_content)) + kind_of_content
    for query in found:
        for made in (frame_of(query, kind), frame_of(query, kind + 1)):
            text += struct.pack(">I", len(made)) + made
    return text + struct.pack(">III", 0, 4, 3)


def cdns(found: list[Query], indefinite: bool = False) -> bytes:
    """C-DNS by cbor2, a block for each two queries, with times in microseconds."""
    blocks = [_block(found[at : at + 2]) for at in range(0, len(found), 2)]
    parameters = {0: {0: 10**6, 1: 5000, 2: {0: 0, 1: 0, 2: 0, 3: 0}, 3: [0], 4: [1]}}
    preamble = {0: 1, 1: 0, 3: [parameters]}
    if not indefinite:
        return cbor2.dumps(["C-DNS", preamble, blocks])
    return (
        b"\x9f"
        + cbor2.dumps("C-DNS")
        + cbor2.dumps(preamble)
        + b"\x9f"
        + b"".join(map(cbor2.dumps, blocks))
        + b"\xff\xff"
    )


def _block(found: list[Query]) -> dict[int, Any]:
    start_us = found[0].time_ns // 1000
    addresses, names, signatures, classtypes, exchanges = [], [], [], [], []
    for query in found:
        parsed = dns.message.from_wire(query.wire)
        question, flags = parsed.question[0], int(parsed.flags)
        addresses += [ip_address(query.client).packed, ip_address(query.server).packed]
        classtypes.append({0: int(question.rdtype), 1: int(question.rdclass)})
        options = b"".join(
            struct.pack(">HH", int(option.otype), len(option.to_wire())) + option.to_wire() for option in parsed.options
        )
        names += [question.name.to_wire(), options]
        bits = (flags >> 4 & 1) | (flags >> 5 & 1) << 1 | (flags >> 8 & 1) << 4 | bool(parsed.ednsflags & 0x8000) << 7
        signature = {
            0: len(addresses) - 1,
            1: 53,
            2: ip_address(query.client).version == 6,
            4: 3,
            5: 0,
            6: bits,
            8: len(classtypes) - 1,
        }
        signature[2] = int(signature[2])
        if parsed.edns >= 0:
            signature |= {4: 7, 13: parsed.edns, 14: parsed.payload, 15: len(names) - 1}
        signatures.append(signature)
        offset_us = query.time_ns // 1000 - start_us
        exchanges.append(
            {
                0: offset_us,
                1: len(addresses) - 2,
                2: query.port,
                3: parsed.id,
                4: len(signatures) - 1,
                7: len(names) - 2,
                8: len(query.wire),
            }
        )
    tables = {0: addresses, 1: classtypes, 2: names, 3: signatures}
    return {0: {0: [start_us // 10**6, start_us % 10**6], 1: 0}, 2: tables, 3: exchanges}


def segments(query: Query, sequence: int, pieces: list[tuple[int, int]], with_syn: bool = True) -> Written:
    """A connection with a query: its bytes from and to, with the length before it."""
    network = (
        IPv6(src=query.client, dst=query.server) if ":" in query.client else IP(src=query.client, dst=query.server)
    )
    wire = struct.pack(">H", len(query.wire)) + query.wire
    head = {"sport": query.port, "dport": 53}
    parts = [Raw(wire[start:end]) for start, end in pieces]
    numbered = [
        TCP(**head, seq=(sequence + 1 + start) % 2**32, flags="PA") / part for (start, _), part in zip(pieces, parts)
    ]
    syn = [TCP(**head, seq=sequence, flags="S")] if with_syn else []
    fin = TCP(**head, seq=(sequence + 1 + len(wire)) % 2**32, flags="FA")
    return [(query.time_ns, frame(network / segment)) for segment in [*syn, *numbered, fin]]


def _decimal(when_ns: int) -> Any:
    from decimal import Decimal

    return Decimal(when_ns) / 10**9


def links(packet: Packet) -> dict[str, tuple[int, bytes]]:
    """The IP packet behind every link layer: its number, and the captured bytes."""
    raw = bytes(packet)
    v6 = isinstance(packet, IPv6)
    ethertype = 0x86DD if v6 else 0x0800
    mac = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    return {
        "ethernet": (1, bytes(mac / packet)),
        "vlan": (1, bytes(mac / Dot1Q(vlan=7) / packet)),
        "qinq": (1, bytes(mac / Dot1AD(vlan=7) / Dot1Q(vlan=8) / packet)),
        "mpls": (1, bytes(mac / MPLS(label=17, s=0) / MPLS(label=18, s=1) / packet)),
        "vlan over mpls": (1, bytes(mac / Dot1Q(vlan=7) / MPLS(label=18, s=1) / packet)),
        "raw ip": (101, raw),
        "raw ip by family": (229 if v6 else 228, raw),
        "ppp": (9, b"\xff\x03" + struct.pack(">H", 0x57 if v6 else 0x21) + raw),
        "ppp, compressed": (9, (b"\x57" if v6 else b"\x21") + raw),
        "cooked": (113, struct.pack(">HHH8sH", 0, 1, 6, b"\2" * 8, ethertype) + raw),
        "cooked 2": (276, struct.pack(">HHIHBB8s", ethertype, 0, 1, 1, 0, 6, b"\2" * 8) + raw),
        "loopback": (0, struct.pack("<I", 30 if v6 else 2) + raw),
        "loopback, OpenBSD": (108, struct.pack(">I", 24 if v6 else 2) + raw),
        "nflog": (
            239,
            struct.pack("<BBHHH", 10 if v6 else 2, 0, 0, 8, 10) + b"pre\0" + struct.pack("<HH", 4 + len(raw), 9) + raw,
        ),
        "padded ethernet": (1, bytes(mac / packet) + b"\x55" * 18),
    }


def noise(at_ns: int) -> Written:
    """What stands beside queries in a capture."""
    answer = dns.message.make_response(dns.message.from_wire(message("www.example.com"))).to_wire()
    update = bytearray(message("www.example.com"))
    update[2] = 5 << 3
    packets = [
        ARP(),
        IP(src="203.0.113.1", dst=SERVER) / ICMP(),
        IP(src="203.0.113.1", dst=SERVER) / UDP(sport=5000, dport=5001) / b"x",
        IP(src=SERVER, dst="203.0.113.1") / UDP(sport=53, dport=40_001) / Raw(answer),
        IP(src=SERVER, dst=ELSEWHERE) / UDP(sport=40_002, dport=53) / Raw(message("up.example")),
        IP(src="203.0.113.1", dst=ELSEWHERE) / UDP(sport=40_002, dport=53) / Raw(message("up.example")),
        IP(src="203.0.113.1", dst=SERVER) / UDP(sport=40_002, dport=53) / Raw(bytes(update)),
        IP(src="203.0.113.1", dst=SERVER) / UDP(sport=40_002, dport=53) / Raw(b"junk"),
        IP(src="203.0.113.1", dst=SERVER) / UDP(sport=53, dport=54) / Raw(message("up.example")),
        IP(src="203.0.113.1", dst=SERVER, frag=3, flags="MF") / Raw(b"12345678"),
        IP(src="203.0.113.1", dst=SERVER, ihl=4) / Raw(b"12345678"),
    ]
    return [(at_ns, frame(packet)) for packet in packets]


def fragmented(packet: Packet) -> list[Packet]:
    """Out of order, with one of them twice."""
    if isinstance(packet, IPv6):
        whole = IPv6(src=packet.src, dst=packet.dst) / IPv6ExtHdrFragment(id=7) / packet.payload
        pieces = fragment6(whole, 200) if len(bytes(packet.payload)) > 200 else [packet]
    else:
        pieces = fragment(packet, 64)
    return [pieces[-1], *pieces[::-1]] if len(pieces) > 1 else pieces


def with_extensions(packet: Packet) -> Packet:
    if isinstance(packet, IPv6):
        extensions = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)]) / IPv6ExtHdrDestOpt(
            options=[PadN(optdata=b"\0" * 4)]
        )
        return IPv6(src=packet.src, dst=packet.dst) / extensions / packet.payload
    options = packet.copy()
    options.options = [IPOption_Router_Alert()]
    del options.ihl, options.len, options.chksum
    return IP(bytes(options))


def write(path: Path, found: list[Query], make: Callable[[Packet], tuple[int, bytes]]) -> Path:
    """A pcap with one packet a query."""
    made = [(query.time_ns, make(datagram(query))) for query in found]
    path.write_bytes(pcap([(when_ns, packet) for when_ns, (_, packet) in made], link=made[0][1][0]))
    return path
