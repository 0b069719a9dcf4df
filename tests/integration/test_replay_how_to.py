"""The how-to of replays by itself: its commands, in order, from tcpdump beside an Unbound to a replay against another.

A block of the page names the host that its commands are for. Only the clients are ours: a stream of known queries.
"""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from test_replay import TCP, UDP, play

from dnsrig.confinement import MACHINE, BindMount, Confinement
from dnsrig.lab import process
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import debian, keys, sources
from dnsrig.servers.unbound import Unbound

pytestmark = pytest.mark.servers

PAGE = Path(__file__).parents[2] / "docs/how-to/replay.md"
BLOCK = re.compile(r"^```sh host=(?P<host>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
HOSTS = {
    "clients": HostSpec(address="198.18.0.4", cpus=[0]),
    "server": HostSpec(address="198.18.0.2", cpus=[1]),
    "replay": HostSpec(address="198.18.0.1", cpus=[0]),
    "candidate": HostSpec(address="198.18.0.3", cpus=[1]),
}
LINKS = [LinkSpec(ends=("clients", "server")), LinkSpec(ends=("replay", "candidate"))]
CLIENTS_FROM = "198.19.0.0/16"
CLIENTS, QUERIES, INTERVAL_NS = 50, 400, 2_000_000
TCP_CLIENTS = 5
UNBOUND = """\
server:
    interface: ADDRESS
    interface: ADDRESS@853
    tls-port: 853
    tls-service-pem: "/mnt/tls-certificate.pem"
    tls-service-key: "/mnt/tls-key.pem"
    access-control: 0.0.0.0/0 allow
    username: ""
    chroot: ""
    pidfile: ""
    use-syslog: no
    module-config: "iterator"
    local-zone: "test." redirect
    local-data: "test. 300 A 192.0.2.1"
remote-control:
    control-enable: no
"""
START_LIMIT_S = 30.0
LIMIT_S = 120
"""For each command."""
PACKETS_WAIT_S = 3.0
"""The kernel hands packets to tcpdump a second late."""

Record = tuple[int, int, bytes]
"""Client, transport, and the message behind its id."""


def made_stream(path: Path) -> list[Record]:
    """docs/reference/stream.md."""
    records, found = bytearray(), []
    for number in range(QUERIES):
        client = number % CLIENTS
        message = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + b"\x05%05d\x04test\x00\0\1\0\1" % number
        transport = TCP if client < TCP_CLIENTS else UDP
        records += struct.pack("<qIHBB", number * INTERVAL_NS, client, len(message), transport, 0) + message
        records += bytes(-len(records) % 8)
        found.append((client, transport, message[2:]))
    header = struct.pack("<8sIIQQqqQQ", b"DNSRSTRM", 1, 64, QUERIES, CLIENTS, 0, (QUERIES - 1) * INTERVAL_NS, 0, 0)
    path.write_bytes(header + records)
    return found


def read_stream(path: Path) -> list[Record]:
    data, at, found = path.read_bytes(), 64, []
    while at < len(data):
        _, client, length, transport, _ = struct.unpack_from("<qIHBB", data, at)
        found.append((client, transport, data[at + 18 : at + 16 + length]))
        at += (16 + length + 7) // 8 * 8
    return found


@contextmanager
def unbound(host: Host, folder: Path) -> Iterator[None]:
    """It answers every name below test."""
    source = sources.find("unbound@forky") or sources.install("unbound@forky")
    own = folder / host.name  # the server becomes the owner of what is in it
    own.mkdir()
    keys.make().write(own, private=True)
    (own / "unbound.conf").write_text(UNBOUND.replace("ADDRESS", str(host.address)))
    command = ["unbound", "-d", "-p", "-c", "/mnt/unbound.conf"]
    with (folder / f"{host.name}.log").open("w") as log:
        confined = Confinement(sources.root(source) or MACHINE, [BindMount(own, "/mnt")], Unbound.capabilities)
        started = process.start("unbound", host, command, confined=confined, stderr=log)
        try:
            until = time.monotonic() + START_LIMIT_S
            while "start of service" not in (said := (folder / f"{host.name}.log").read_text()):
                assert started.running and time.monotonic() < until, said
                time.sleep(0.05)
            yield
        finally:
            started.stop()


def tcpdump_as_installed(folder: Path) -> None:
    """A command tcpdump in ``folder``, from a Debian suite."""
    root = next(iter(debian.roots("forky", "tcpdump")), None) or debian.build("forky", "tcpdump", ("tcpdump",))
    loader = f"{root.path}/lib64/ld-linux-x86-64.so.2 --library-path {root.path}/usr/lib/x86_64-linux-gnu"
    (folder / "tcpdump").write_text(f'#!/bin/sh\nexec {loader} {root.path}/usr/bin/tcpdump "$@"\n')
    (folder / "tcpdump").chmod(0o755)


@pytest.mark.full
def test_the_how_to_alone(tmp_path: Path) -> None:
    tcpdump_as_installed(tmp_path)
    said: list[tuple[str, str, str]] = []
    with Network(HOSTS, LINKS, directory=tmp_path) as network, ExitStack() as stack:
        hosts = network.hosts
        for name in ("server", "candidate"):
            stack.enter_context(unbound(hosts[name], tmp_path))
        for block in BLOCK.finditer(PAGE.read_text()):
            for line in block["text"].splitlines():
                started = stack.enter_context(running(hosts[block["host"]], line.removesuffix(" &"), tmp_path))
                if line.startswith("tcpdump "):
                    assert started.stderr is not None
                    assert any("listening on" in words for words in started.stderr)
                    asked = clients_ask(hosts, tmp_path)
                    started.send_signal(signal.SIGINT)
                elif line.endswith(" &"):
                    assert started.stdout is not None
                    assert any('"ready"' in words for words in started.stdout)
                    continue
                output, errors = started.communicate(timeout=LIMIT_S)
                assert started.returncode == 0, f"{line}\n{output}{errors}"
                said.append((line, output, errors))
    assert "0 packets dropped by kernel" in said[0][2]
    assert by_client(read_stream(tmp_path / "clients.stream")) == by_client(asked)
    summaries = [json.loads(output.splitlines()[-1]) for line, output, _ in said if " replay play " in line]
    assert [summary["answered"] for summary in summaries] == [QUERIES] * 3, summaries
    rest, dot, tcp = summaries[-1]["classes"]
    assert rest["clients"] + dot["clients"] + tcp["clients"] == CLIENTS
    assert dot["connections"]["handshakes"] == dot["clients"] > 0
    assert tcp["connections"]["established"] == tcp["answered"]


@contextmanager
def running(host: Host, line: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command of the page, as a person would type it on ``host``."""
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["ip", "netns", "exec", host.namespace, "bash", "-c", f"exec {line}"],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.terminate()


def by_client(records: list[Record]) -> list[list[tuple[int, bytes]]]:
    """What each asked. Numbers of clients and order say less: a handshake takes a moment before a query over TCP."""
    found: dict[int, list[tuple[int, bytes]]] = {}
    for client, transport, message in records:
        found.setdefault(client, []).append((transport, message))
    return sorted(map(sorted, found.values()))


def clients_ask(hosts: dict[str, Host], folder: Path) -> list[Record]:
    """What they asked the server."""
    asked = made_stream(folder / "asked")
    clients, server = hosts["clients"], hosts["server"]
    subprocess.run(["ip", "-n", clients.namespace, "route", "add", "local", CLIENTS_FROM, "dev", "lo"], check=True)
    way = f"{CLIENTS_FROM} via {clients.address}".split()
    subprocess.run(["ip", "-n", server.namespace, "route", "add", *way], check=True)
    where = ["--server", str(server.address), "--clients-from", CLIENTS_FROM]
    summary = play(clients.namespace, folder / "asked", *where)
    assert summary["answered"] == QUERIES, summary
    time.sleep(PACKETS_WAIT_S)
    return asked
