"""`replay play` between hosts: addresses that no device has, over both families and all transports."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dnsrig import paths
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec

CLIENTS, QUERIES = 1_000, 3_000
UDP, TCP, DOT = range(3)
TRANSPORTS = (UDP, UDP, UDP, UDP, UDP, UDP, UDP, TCP, TCP, DOT)
INTERVAL_NS = 300_000
HOSTS = {
    "clients": HostSpec(address="198.18.0.1", cpus=[0]),
    "server": HostSpec(address="198.18.0.2", cpus=[1]),
}
"""198.18.0.1 is also 2001:2::1."""


def write_stream(path: Path) -> None:
    """docs/reference/stream.md."""
    records = bytearray()
    for number in range(QUERIES):
        message = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + b"\x05%05d\x04test\x00" % number + b"\0\1\0\1"
        transport = TRANSPORTS[number % len(TRANSPORTS)]
        records += struct.pack("<qIHBB", number * INTERVAL_NS, number % CLIENTS, len(message), transport, 0) + message
        records += bytes(-len(records) % 8)
    header = struct.pack("<8sIIQQqqQQ", b"DNSRSTRM", 1, 64, QUERIES, CLIENTS, 0, (QUERIES - 1) * INTERVAL_NS, 0, 0)
    path.write_bytes(header + records)


def inside(namespace: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *words]


def play(namespace: str, stream: Path, *options: str) -> dict[str, Any]:
    command = inside(namespace, str(paths.engine()), "replay", "play", str(stream), *options)
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("server", "prefix", "via"),
    [
        pytest.param("198.18.0.2:53", "198.19.0.0/16", "198.18.0.1", id="IPv4", marks=pytest.mark.full),
        pytest.param("[2001:2::2]:53", "2001:2:0:5::/64", "2001:2::1", id="IPv6"),
    ],
)
def test_clients_of_a_routed_prefix_are_answered(tmp_path: Path, server: str, prefix: str, via: str) -> None:
    stream = tmp_path / "clients.stream"
    write_stream(stream)
    with Network(HOSTS, [LinkSpec(ends=("clients", "server"))], directory=tmp_path) as network:
        clients, other = network.hosts["clients"].namespace, network.hosts["server"].namespace
        subprocess.run(["ip", "-n", clients, "route", "add", "local", prefix, "dev", "lo"], check=True)
        subprocess.run(["ip", "-n", other, "route", "add", prefix, "via", via], check=True)
        echo = [str(paths.engine()), "serve", "echo", server, "--transport", "udp,tcp,dot", "--until-eof"]
        command = inside(other, *echo)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serving:
            assert serving.stdout is not None and serving.stdin is not None
            while json.loads(serving.stdout.readline())["event"] != "ready":
                pass
            summary = play(clients, stream, "--server", server, "--clients-from", prefix, "--ports", "4")
            serving.stdin.close()
    assert (summary["sent"], summary["answered"]) == (QUERIES, QUERIES), summary
    # Each client that asks over TCP or TLS has one connection over it.
    assert summary["connections"]["established"] == CLIENTS * 3 // 10
