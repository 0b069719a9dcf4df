"""`serve echo` over QUIC and HTTPS as other programs' clients have it: kdig and kxdpgun of Knot DNS, and dnsperf."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dnsrig import paths
from dnsrig.confinement import BindMount, Confinement
from dnsrig.lab import process
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import debian

SERVER, CLIENT = "198.18.0.2", "198.18.0.3"
LIMIT_S = 20
QUERIES = 200


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    specs = {"server": HostSpec(address=SERVER, cpus=[0]), "client": HostSpec(address=CLIENT, cpus=[0])}
    with Network(specs, [LinkSpec(ends=("server", "client"))], directory=tmp_path) as made:
        yield made


@contextlib.contextmanager
def echo(network: Network, *options: str) -> Iterator[None]:
    command = [str(paths.engine()), "serve", "echo", f"{SERVER}:53", *options]
    server = process.start("serve", network.hosts["server"], command, stdout=subprocess.PIPE)
    try:
        assert server.popen.stdout is not None
        assert any(json.loads(line)["event"] == "ready" for line in server.popen.stdout)
        yield
    finally:
        server.stop()


def printed(network: Network, folder: Path, *command: str) -> str:
    """What a program of Debian prints on the client's host, which sees ``folder`` as `/mnt/test`."""
    found = [root for root in debian.roots("forky", "peers") if {"knot-dnsutils", "dnsperf"} <= set(root.packages)]
    root = (found or [debian.build("forky", "peers", ("knot-dnsutils", "dnsperf"))])[-1]
    output = folder / "output"
    with output.open("wb") as file:
        confined = Confinement(root.path, [BindMount(folder, "/mnt/test")], as_root=True)
        started = process.start(command[0], network.hosts["client"], command, confined=confined, stdout=file)
        try:
            code = started.popen.wait(LIMIT_S)
        finally:
            started.stop()
    assert code == 0, output.read_text()
    return output.read_text()


def test_kdig_is_answered_over_quic_with_and_without_a_retry(network: Network, tmp_path: Path) -> None:
    names = ["www.example.com", "A", "mail.example.com", "AAAA"]
    for options in ([], ["--retry"]):
        with echo(network, "--transport=udp,doq", *options):
            seen = printed(network, tmp_path, "kdig", f"@{SERVER}", "+quic", "+keepopen", *names)
        assert seen.count("status: NOERROR") == 2 and seen.count("id: 0") == 2, seen
        assert "QUIC session" in seen and "www.example.com." in seen, seen


def test_kxdpgun_is_answered_over_quic_though_its_ids_are_not_0(network: Network, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("www.example.com A\n")
    options = ["-t", "1", "-Q", "50", "-j", "-I", "server", "-i", "/mnt/test/queries.txt"]
    with echo(network, "--transport=udp,doq"):
        for mode in ("-U0", "-U"):
            seen = printed(network, tmp_path, "kxdpgun", mode, *options, SERVER)
            total = json.loads(seen.splitlines()[-1])
            assert total["queries"] == total["responses"] >= 50, seen


def test_kdig_and_dnsperf_are_answered_over_https(network: Network, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("".join(f"www{number}.example.com A\n" for number in range(QUERIES)))
    dnsperf = ["dnsperf", "-s", SERVER, "-m", "doh", "-d", "/mnt/test/queries.txt", "-n", "1", "-c", "4"]
    uri = f"doh-uri=https://{SERVER}/dns-query"
    with echo(network, "--transport=udp,doh"):
        for form in ("+https", "+https-get"):
            seen = printed(network, tmp_path, "kdig", f"@{SERVER}", form, "www.example.com", "A")
            assert "status: NOERROR" in seen and "HTTP/2" in seen, seen
        for method in ("GET", "POST"):
            seen = printed(network, tmp_path, *dnsperf, "-O", uri, "-O", f"doh-method={method}")
            assert f"NOERROR {QUERIES} (100.00%)" in " ".join(seen.split()), seen
