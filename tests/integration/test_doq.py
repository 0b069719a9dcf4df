"""`serve echo` over QUIC as another program's client has it: kdig of Knot DNS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from dnsrig import paths
from dnsrig.confinement import Confinement
from dnsrig.lab import process
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import debian

SERVER, CLIENT = "198.18.0.2", "198.18.0.3"
LIMIT_S = 20


def test_kdig_is_answered_with_and_without_a_retry(tmp_path: Path) -> None:
    found = [root for root in debian.roots("forky", "peers") if "knot-dnsutils" in root.packages]
    root = (found or [debian.build("forky", "peers", ("knot-dnsutils",))])[-1]
    specs = {"server": HostSpec(address=SERVER, cpus=[0]), "client": HostSpec(address=CLIENT, cpus=[0])}
    serve = [str(paths.engine()), "serve", "echo", f"{SERVER}:53", "--transport", "udp,doq"]
    with Network(specs, [LinkSpec(ends=("server", "client"))], directory=tmp_path) as network:
        for options in ([], ["--retry"]):
            server = process.start("serve", network.hosts["server"], [*serve, *options], stdout=subprocess.PIPE)
            try:
                assert server.popen.stdout is not None
                assert any(json.loads(line)["event"] == "ready" for line in server.popen.stdout)
                printed = asked_by_kdig(network, root.path, tmp_path / "output")
            finally:
                server.stop()
            assert printed.count("status: NOERROR") == 2 and printed.count("id: 0") == 2, printed
            assert "QUIC session" in printed and "www.example.com." in printed, printed


def asked_by_kdig(network: Network, root: Path, output: Path) -> str:
    """What kdig prints of two queries on one connection."""
    names = ["www.example.com", "A", "mail.example.com", "AAAA"]
    command = ["kdig", f"@{SERVER}", "+quic", "+keepopen", *names]
    with output.open("wb") as file:
        confined = Confinement(root, [], as_root=True)
        started = process.start("kdig", network.hosts["client"], command, confined=confined, stdout=file)
        try:
            code = started.popen.wait(LIMIT_S)
        finally:
            started.stop()
    assert code == 0, output.read_text()
    return output.read_text()
