"""A capture becomes a stream, the stream a world that has all its names, and a resolver finds them all there."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import world_server
from resolver_host import RESOLVER, between_clients_and_world
from test_replay import play

INTERNET, CLIENTS_FROM = "198.18.0.3", "198.19.0.0/16"
TYPES = {"A": 1, "AAAA": 28, "MX": 15, "TXT": 16, "SRV": 33, "HTTPS": 65, "PTR": 12, "NAPTR": 35}
ASKED = [
    *((f"www.shop{number}.{tld}", kind) for number in range(40) for tld, kind in (("org", "A"), ("example", "AAAA"))),
    *((f"{number}.2.0.192.in-addr.arpa", "PTR") for number in range(20)),
    ("a.b.c.d.deep.co.uk", "TXT"),
    ("deep.co.uk", "A"),
    ("c.d.deep.co.uk", "A"),
    ("_sip._tcp.voice.net", "SRV"),
    ("voice.net", "NAPTR"),
    ("mail.com", "MX"),
    ("mail.com", "HTTPS"),
    ("com", "A"),
    ("printer", "A"),
    ("xn--bcher-kva.example", "HTTPS"),
    ("ipv4only.arpa", "AAAA"),
]
CLIENTS, INTERVAL_S = 10, 0.01


def write_capture(path: Path) -> None:
    """A pcap of IP packets, as tcpdump writes it: https://www.tcpdump.org/manpages/pcap-savefile.5.txt."""
    packets = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for number, (name, kind) in enumerate(ASKED):
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        message = struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", TYPES[kind], 1)
        udp = struct.pack("!4H", 4000, 53, 8 + len(message), 0) + message
        addresses = bytes([192, 0, 2, 1 + number % CLIENTS]) + bytes([192, 0, 2, 200])
        packet = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), number, 0, 64, 17, 0) + addresses + udp
        when = number * INTERVAL_S
        packets += struct.pack("<4I", int(when), int(when % 1 * 1e6), len(packet), len(packet)) + packet
    path.write_bytes(packets)


def engine(*words: str) -> dict[str, Any]:
    """The summary of a command."""
    return json.loads(world_server.engine(*words).splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "covers", [pytest.param(True, id="all names"), pytest.param(False, id="none of them", marks=pytest.mark.full)]
)
def test_a_resolver_finds_every_name_of_a_capture(tmp_path: Path, covers: bool) -> None:
    capture, stream = tmp_path / "clients.pcap", tmp_path / "clients.stream"
    write_capture(capture)
    engine("replay", "prepare", str(capture), "--out", str(stream))
    from_stream = ["--from-stream", str(stream)] if covers else []
    world = world_server.make(tmp_path / "world.toml", "--zones", "100", *from_stream)
    with between_clients_and_world(tmp_path, "unbound", world, INTERNET, CLIENTS_FROM) as (internet, _):
        summary = play(internet.namespace, stream, "--server", RESOLVER, "--clients-from", CLIENTS_FROM)
    assert summary["answered"] == len(ASKED), summary
    missing = set(pl.read_ipc_stream(world.out / "not-in-world.arrow")["name"]) - {"id.server", "server"}
    assert (missing == set()) == covers, missing
