"""Captures of the same queries, as foreign tools write them: scapy and dpkt, for dnstap fstrm and dnstap-pb.

By hand are NFLOG's header, which none of them knows, and the maps of C-DNS, of which cbor2 makes the bytes: no tool
that writes C-DNS is packaged.
"""

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
from dnstap_pb import Dnstap
from fstrm import FstrmCodec
from fstrm.fstrm_codec import FSTRM_CONTROL_STOP
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
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback, LoopbackOpenBSD
from scapy.layers.ppp import HDLC, PPP
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgWriter, RawPcapWriter

conf.verb = 0

SERVER, SERVER_V6 = "192.0.2.53", "2001:db8::53"
ELSEWHERE = "198.51.100.7"
START_NS = 1_700_000_000_000_000_000


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


def of_clients_of_a_resolver(server: str = SERVER, queries: int = 600, interval_ns: int = 10_000_000) -> Written:
    """What 40 clients ask: a popular name, rare ones, and ones that not every client shares."""
    types, packets = ["A", "AAAA", "HTTPS", "MX", "TXT"], []
    for number in range(queries):
        name = ["www.example.com", f"a.b.shop{number}.example", f"host{number % 70}.net"][number % 3]
        wire = message(name, types[number % len(types)], number=number)
        client = number * 7 % 40
        query = Query(START_NS + number * interval_ns, f"203.0.113.{client}", 40_000 + client, wire, server)
        packets.append((query.time_ns, frame(datagram(query))))
    return packets


def pcap(packets: Written, link: int = 1, big: bool = False, nano: bool = False) -> bytes:
    """By dpkt; big-endian by scapy, for dpkt writes the byte order of the machine."""
    output = io.BytesIO()
    if big:
        by_scapy = RawPcapWriter(output, linktype=link, endianness=">", nano=nano)
        by_scapy.write_header(None)
        for when_ns, packet in packets:
            seconds, part_ns = divmod(when_ns, 10**9)
            by_scapy.write_packet(packet, sec=seconds, usec=part_ns if nano else part_ns // 1000)
    else:
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
    """By dpkt: big-endian, times in nanoseconds."""
    nanoseconds = dpkt.pcapng.PcapngOption(code=dpkt.pcapng.PCAPNG_OPT_IF_TSRESOL, data=b"\x09")
    interface = dpkt.pcapng.InterfaceDescriptionBlock(opts=[nanoseconds, dpkt.pcapng.PcapngOption()])
    blocks = [dpkt.pcapng.SectionHeaderBlock(), interface]
    for when_ns, packet in packets:
        high, low = divmod(when_ns, 2**32)
        blocks.append(dpkt.pcapng.EnhancedPacketBlock(ts_high=high, ts_low=low, pkt_data=packet))
    return b"".join(map(bytes, blocks))


def pcapng_by_scapy(path: Path, packets: Written) -> None:
    with PcapNgWriter(str(path)) as writer:
        for when_ns, packet in packets:
            made = Ether(packet)
            made.time = _decimal(when_ns)
            writer.write(made)


def dnstap(found: list[Query], kind: int = 5) -> bytes:
    """Messages of ``kind``, CLIENT_QUERY, each followed by its response, in a frame stream: by dnstap-pb and fstrm."""
    frames = FstrmCodec()
    text = frames.encode_ctrlstart(b"protobuf:dnstap.Dnstap")
    for query in found:
        client, server = ip_address(query.client), ip_address(query.server)
        record = Dnstap(type=1, identity=b"a server")
        record.message.socket_family = 1 if client.version == 4 else 2
        record.message.socket_protocol = 1
        record.message.query_address, record.message.response_address = client.packed, server.packed
        record.message.query_port, record.message.response_port = query.port, 53
        record.message.query_time_sec, record.message.query_time_nsec = divmod(query.time_ns, 10**9)
        record.message.query_message = query.wire
        for record.message.type in (kind, kind + 1):
            text += frames.encode_data(record.SerializeToString())
    return bytes(text + frames.encode(FSTRM_CONTROL_STOP))


def dnstap_answers(found: list[Query], with_queries: bool = False) -> bytes:
    """CLIENT_RESPONSE of each query, without the query, perhaps behind its CLIENT_QUERY."""
    frames = FstrmCodec()
    text = frames.encode_ctrlstart(b"protobuf:dnstap.Dnstap")
    for query in found:
        record = Dnstap(type=1)
        record.message.type = 6
        record.message.socket_family, record.message.socket_protocol = 1, 1
        record.message.query_address = ip_address(query.client).packed
        record.message.response_address = ip_address(query.server).packed
        record.message.query_port, record.message.response_port = query.port, 53
        record.message.query_time_sec, record.message.query_time_nsec = divmod(query.time_ns, 10**9)
        asked = Dnstap()
        asked.CopyFrom(record)
        asked.message.type, asked.message.query_message = 5, query.wire
        if with_queries:
            text += frames.encode_data(asked.SerializeToString())
        parsed = dns.message.from_wire(query.wire)
        answered = dns.message.make_response(parsed)
        if parsed.edns >= 0:
            answered.want_dnssec(bool(parsed.ednsflags & 0x8000))
        record.message.response_time_sec, record.message.response_time_nsec = divmod(query.time_ns + 10**6, 10**9)
        record.message.response_message = answered.to_wire()
        text += frames.encode_data(record.SerializeToString())
    return bytes(text + frames.encode(FSTRM_CONTROL_STOP))


def cdns_answers(found: list[Query]) -> bytes:
    """C-DNS of answers whose queries were not seen."""
    block = _block(found)
    for signature in block[2][3]:
        # A response with or without EDNS, and the response's RD in the place of the query's.
        signature[4] = 2 | (8 if signature[4] & 4 else 0)
        signature[6] = 1 << 12
    return cbor2.dumps(["C-DNS", {0: 1, 1: 0, 3: [{0: {0: 10**6, 1: 5000, 2: {}, 3: [0], 4: [1]}}]}, [block]])


def wrapped(packet: bytes) -> dict[str, Packet]:
    """A captured frame within other packets."""
    inner = Ether(packet)
    payload = inner.payload
    outer = IP(src="198.18.0.1", dst="198.18.0.2")
    outer_v6 = IPv6(src="2001:2::1", dst="2001:2::2")
    number = 4 if isinstance(payload, IP) else 41
    ethertype = 0x0800 if number == 4 else 0x86DD

    def gre(flags: int, protocol: int, rest: bytes) -> Packet:
        return outer.copy() / Raw(struct.pack(">HH", flags, protocol) + rest)

    made: dict[str, Packet] = {
        "IP in IP": IP(src=outer.src, dst=outer.dst, proto=number) / Raw(bytes(payload)),
        "IP in IPv6": IPv6(src=outer_v6.src, dst=outer_v6.dst, nh=number) / Raw(bytes(payload)),
        "GRE": gre(0, ethertype, bytes(payload)),
        "GRE with a key and a checksum": gre(0xA000, ethertype, bytes(8) + bytes(payload)),
        "GRE with Ethernet": gre(0, 0x6558, packet),
        "ERSPAN I": gre(0, 0x88BE, packet),
        "ERSPAN II": gre(0x1000, 0x88BE, bytes(4) + bytes(8) + packet),
        "ERSPAN III": gre(0x1000, 0x22EB, bytes(4) + bytes(12) + packet),
        "ERSPAN III with another part": gre(0x1000, 0x22EB, bytes(4) + bytes(11) + b"\1" + bytes(8) + packet),
        "VXLAN": outer / UDP(sport=1, dport=4789) / Raw(b"\x08" + bytes(7) + packet),
        "VXLAN in IPv6": outer_v6 / UDP(sport=1, dport=8472) / Raw(b"\x08" + bytes(7) + packet),
        "Geneve with an option": outer / UDP(sport=1, dport=6081) / Raw(b"\x02\0\x65\x58" + bytes(4 + 8) + packet),
    }
    for name, packet_made in made.items():
        if name.startswith(("GRE", "ERSPAN")):
            packet_made.proto = 47
    made["VXLAN in GRE"] = gre(0, 0x0800, bytes(made["VXLAN"]))
    made["VXLAN in GRE"].proto = 47
    return made


def statistics(dropped: tuple[int, int]) -> bytes:
    """Two blocks of interface statistics for pcapng: the second one replaces the first."""
    blocks = b""
    for by_interface, by_system in ((1, 1), dropped):
        options = struct.pack("<HHQ", 5, 8, by_interface) + struct.pack("<HHQ", 7, 8, by_system) + bytes(4)
        body = struct.pack("<III", 0, 0, 0) + options
        blocks += struct.pack("<II", 5, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
    return blocks


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


def segments(
    query: Query, sequence: int, pieces: list[tuple[int, int]], with_syn: bool = True, port: int = 53
) -> Written:
    """A connection with a query: its bytes from and to, with the length before it."""
    network = (
        IPv6(src=query.client, dst=query.server) if ":" in query.client else IP(src=query.client, dst=query.server)
    )
    wire = struct.pack(">H", len(query.wire)) + query.wire
    head = {"sport": query.port, "dport": port}
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
    mac = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    return {
        "ethernet": (1, bytes(mac / packet)),
        "vlan": (1, bytes(mac / Dot1Q(vlan=7) / packet)),
        "qinq": (1, bytes(mac / Dot1AD(vlan=7) / Dot1Q(vlan=8) / packet)),
        "mpls": (1, bytes(mac / MPLS(label=17, s=0) / MPLS(label=18, s=1) / packet)),
        "vlan over mpls": (1, bytes(mac / Dot1Q(vlan=7) / MPLS(label=18, s=1) / packet)),
        "raw ip": (101, raw),
        "raw ip by family": (229 if v6 else 228, raw),
        "ppp": (9, bytes(HDLC() / PPP() / packet)),
        "ppp, compressed": (9, bytes(PPP(proto=b"\x57" if v6 else b"\x21") / packet)),
        "cooked": (113, bytes(CookedLinux(pkttype=0) / packet)),
        "cooked 2": (276, bytes(CookedLinuxV2(pkttype=0) / packet)),
        "loopback": (0, bytes(Loopback(type=30 if v6 else 2) / packet)),
        "loopback, OpenBSD": (108, bytes(LoopbackOpenBSD(type=24 if v6 else 2) / packet)),
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
