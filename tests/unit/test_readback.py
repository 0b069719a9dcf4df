"""What manipulation checks go by: the packets that reach a secondary, what servers show of their settings, which zones
they were told of."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from placement_data import ZONES, placed

from dnsrig.procedures.parts import notifies, readback
from dnsrig.procedures.parts.notifies import FOLLOWS_S, Packet
from dnsrig.servers import all_drivers, driver
from dnsrig.servers.placement import Zone

CATALOG = Zone("catalog.invalid", "catalog.zone")
CATALOGS = sorted(kind for kind, server in all_drivers().items() if server.support("catalog zones").secondary)
A, B = b"\1a", b"\1b"


def ip(protocol: int, payload: bytes, to: bytes = b"\xc6\x12\0\1") -> bytes:
    return bytes([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 18, 0, 2]) + to + payload


def udp(third_byte: int, name: bytes = A + b"\0") -> bytes:
    return ip(17, bytes(8) + bytes([0, 7, third_byte]) + bytes(9) + name + b"\0\6\0\1")


def notify(time_s: float, zone: bytes = A, number: int = 1) -> Packet:
    return Packet(time_s, True, zone, number)


def asks(time_s: float, zone: bytes = A) -> Packet:
    return Packet(time_s, False, zone)


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        ([notify(1.0), asks(1.1), asks(1.2, b"")], (1, 1, 2, 0)),
        ([notify(1.0), notify(2.0), asks(2.1)], (1, 1, 1, 0)),
        ([notify(1.0, number=1), notify(1.0, number=2)], (2, 0, 0, 0)),
        ([notify(1.0), asks(1.0 + 2 * FOLLOWS_S)], (1, 0, 1, 1)),
        ([asks(0.9), notify(1.0)], (1, 0, 1, 1)),
        ([notify(1.0), asks(1.1, B)], (1, 0, 1, 1)),
        ([notify(1.0), asks(1.1, b"")], (1, 1, 1, 0)),
        ([asks(1.0), asks(3.0, b"")], (0, 0, 2, 2)),
        ([], (0, 0, 0, 0)),
    ],
    ids=["asked", "sent again", "not asked", "too late", "before", "another zone", "connection", "timer", "nothing"],
)
def test_what_a_secondary_was_told(packets: list[Packet], expected: tuple[int, ...]) -> None:
    assert tuple(notifies.counted(packets).values()) == expected


def test_packets_by_what_they_are() -> None:
    primaries = {b"\xc6\x12\0\1"}
    assert notifies.packet_of(udp(0x24), 1.0, primaries) == Packet(1.0, True, A, 7)
    assert notifies.packet_of(udp(0, b"\1A\0"), 1.0, primaries) == asks(1.0)
    assert notifies.packet_of(ip(6, bytes(20)), 1.0, primaries) == asks(1.0, b"")
    assert notifies.packet_of(udp(0), 1.0, set()) is None
    assert notifies.packet_of(udp(0, b"\1a"), 1.0, primaries) == asks(1.0), "the type that follows has a zero byte"


@pytest.mark.parametrize("length", range(60))
def test_a_packet_that_was_cut_says_nothing_wrong(length: int) -> None:
    found = notifies.packet_of(udp(0x24)[:length], 1.0, {b"\xc6\x12\0\1"})
    assert found is None or found.zone == A


UDP, TCP, ICMP = 17, 6, 1
ACK, PSH_ACK = 0x10, 0x18


def over_ipv4(protocol: int, payload: bytes, fragment: int = 0, options: int = 0) -> bytes:
    head = bytes([0x45 + options, 0, 0, 0, 0, 0]) + fragment.to_bytes(2) + bytes([64, protocol]) + bytes(10)
    return head + bytes(4 * options) + payload


def over_ipv6(protocol: int, payload: bytes) -> bytes:
    return bytes([0x60, 0, 0, 0, 0, 0, protocol, 64]) + bytes(32) + payload


def to_port(port: int, third_byte: int = 0) -> bytes:
    """A UDP datagram with a DNS message that has this third byte."""
    return bytes(2) + port.to_bytes(2) + bytes(4) + bytes([0, 7, third_byte]) + bytes(9)


def segment_to(port: int, flags: int) -> bytes:
    return bytes(2) + port.to_bytes(2) + bytes(9) + bytes([flags]) + bytes(6)


def kept_bytes(packet: bytes, is_sent: bool) -> int:
    """What the filter keeps of a packet. It is executed as the kernel does (Documentation/networking/filter.rst)."""
    a = x = at = 0
    while True:
        code, if_true, if_false, k = notifies.FILTER[at]
        at += 1
        start, length = {0x30: (k, 1), 0x28: (k, 2), 0x50: (x + k, 1), 0x48: (x + k, 2)}.get(code, (0, 0))
        if length and k == 0xFFFFF004:
            a = 4 if is_sent else 0  # PACKET_OUTGOING, PACKET_HOST
        elif length and start + length > len(packet):
            return 0
        elif length:
            a = int.from_bytes(packet[start : start + length])
        elif code == 0x54:
            a &= k
        elif code in (0x15, 0x45):
            at += if_true if (a == k if code == 0x15 else a & k) else if_false
        elif code == 0x05:
            at += k
        elif code in (0x01, 0xB1):
            x = k if code == 0x01 else 4 * (packet[k] & 15)
        else:
            assert code == 0x06
            return k


@pytest.mark.parametrize("over", [over_ipv4, over_ipv6])
@pytest.mark.parametrize(
    ("protocol", "payload", "when_sent", "when_received"),
    [
        (UDP, to_port(53, 0x20), True, True),
        (UDP, to_port(53, 0x24), True, True),
        (UDP, to_port(53, 0x00), True, False),
        (UDP, to_port(53, 0x28), True, False),
        (UDP, to_port(53, 0xA0), True, False),
        (UDP, to_port(54, 0x20), False, False),
        (UDP, to_port(853, 0x20), False, False),
        (UDP, to_port(53, 0x20)[:10], False, False),
        (TCP, segment_to(53, PSH_ACK), True, True),
        (TCP, segment_to(53, ACK), False, False),
        (TCP, segment_to(853, PSH_ACK), True, False),
        (TCP, segment_to(853, ACK), False, False),
        (TCP, segment_to(443, PSH_ACK), False, False),
        (ICMP, to_port(53, 0x20), False, False),
    ],
)
def test_the_kernel_keeps_notifies_and_questions(
    over: Callable[[int, bytes], bytes], protocol: int, payload: bytes, when_sent: bool, when_received: bool
) -> None:
    """Over TLS only what is sent: nobody sees what is in it."""
    packet = over(protocol, payload)
    assert kept_bytes(packet, is_sent=True) == (512 if when_sent else 0)
    assert kept_bytes(packet, is_sent=False) == (512 if when_received else 0)


@pytest.mark.parametrize(
    ("packet", "is_kept"),
    [
        (over_ipv4(UDP, to_port(53, 0x20), options=1), True),
        (over_ipv4(UDP, to_port(53, 0x20), options=10), True),
        (over_ipv4(UDP, to_port(53, 0x20), fragment=0x4000), True),
        (over_ipv4(UDP, to_port(53, 0x20), fragment=0x2000), True),
        (over_ipv4(UDP, to_port(53, 0x20), fragment=0x2001), False),
        (over_ipv4(UDP, to_port(53, 0x20), fragment=0x1000), False),
        (b"\x50" + over_ipv4(UDP, to_port(53, 0x20))[1:], False),
        (b"\x6f" + over_ipv6(UDP, to_port(53, 0x20))[1:], True),
    ],
)
def test_only_the_first_fragment_has_ports_and_they_come_after_the_options(packet: bytes, is_kept: bool) -> None:
    assert kept_bytes(packet, is_sent=False) == (512 if is_kept else 0)


@pytest.mark.parametrize(("after_s", "followed"), [(-0.5, 0), (0.0, 1), (FOLLOWS_S, 1), (FOLLOWS_S + 0.5, 0)], ids=str)
def test_a_question_follows_a_notify_within_five_seconds(after_s: float, followed: int) -> None:
    found = notifies.counted(sorted([notify(8.0), asks(8.0 + after_s)], key=lambda packet: packet.time_s))
    assert (found["followed"], found["unprompted"]) == (followed, 1 - followed)


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        (
            'options {\n\tcatalog-zones {\n\t\tzone "c" default-primaries {\n\t\t\t198.18.0.1 port 53;\n'
            "\t\t} min-update-interval 1;\n\t};\n\tserial-query-rate 10000;\n};\n",
            ["serial-query-rate", "min-update-interval", "transfers-in"],
            {"serial-query-rate": "10000", "min-update-interval": "1"},
        ),
        (
            "server.async-start = on\ntemplate[default].journal-content = none\n",
            ["server.async-start", "template.journal-content"],
            {"server.async-start": "on", "template.journal-content": "none"},
        ),
        (
            "server:\n\txfrd-tcp-max: 512\n\t#nsid:\npattern:\n\tsize-limit-xfr: 9\n",
            ["xfrd-tcp-max", "pattern.size-limit-xfr", "nsid"],
            {"xfrd-tcp-max": "512", "pattern.size-limit-xfr": "9"},
        ),
        ("retrieval-threads=16\n# xfr-cycle-interval=60\n", ["retrieval-threads"], {"retrieval-threads": "16"}),
    ],
    ids=["BIND", "Knot DNS", "NSD", "PowerDNS"],
)
def test_settings_as_servers_show_them(text: str, names: list[str], expected: dict[str, str]) -> None:
    assert readback.shown(text, names) == expected


@pytest.mark.parametrize("kind", sorted(set(CATALOGS) - {"transfer", "powerdns"}))
@pytest.mark.parametrize("catalog", [None, CATALOG], ids=["static", "catalog"])
def test_zones_that_a_secondary_was_told_of(tmp_path: Path, kind: str, catalog: Zone | None) -> None:
    placement = placed(tmp_path, kind, "secondary", catalog=catalog)
    driver(kind).configure(placement)
    assert readback.configured(placement) == {"zones": 0 if catalog else len(ZONES)}


@pytest.mark.parametrize("members", ["", "catalog.invalid"])
def test_members_in_the_database_of_powerdns(tmp_path: Path, members: str) -> None:
    placement = placed(tmp_path, "powerdns", "secondary")
    assert readback.configured(placement) == {}
    with sqlite3.connect(placement.state / "zones.sqlite3") as connection:
        connection.execute("CREATE TABLE domains (name TEXT, catalog TEXT)")
        rows = [(CATALOG.name, None), *((zone.name, members) for zone in ZONES)]
        connection.executemany("INSERT INTO domains VALUES (?, ?)", rows)
    assert readback.configured(placement) == {"zones": 0 if members else len(ZONES)}


def test_a_server_that_says_nothing_of_its_zones(tmp_path: Path) -> None:
    placement = placed(tmp_path, "transfer", "secondary")
    assert readback.configured(placement) == {}
