"""Zone transfers over QUIC: from Knot DNS and the synthetic primary, to the instrument, to Knot DNS, and to kdig."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import specs
from suites import quick

from dnsrig import paths
from dnsrig.confinement import Confinement
from dnsrig.errors import UsageError
from dnsrig.lab import process
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.runs.trial import Trial
from dnsrig.servers import debian

ZONES = 30
SERVER, CLIENT = "198.18.0.2", "198.18.0.3"
LIMIT_S = 20


@pytest.mark.parametrize("primary", ["knot@forky", "zones@engine"])
def test_the_instrument_transfers(measure: Callable[..., Trial], primary: str) -> None:
    trial = measure(
        f"server={primary}",
        "policy=pipelined",
        "options.window=5",
        "transport=tcp",
        "transfer.transport=xoq",
        f"dataset.zones={ZONES}",
        "baseline={}",
        experiment="connection-policy",
    )
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.transfers.height == ZONES and set(trial.transfers["outcome"]) == {"done"}
    assert set(trial.connections["handshake"]) == {"full"}
    assert trial.transfer["quic"]["congestion"] == "cubic"


@pytest.mark.parametrize("primary", quick(["knot@forky", "zones@engine"], "zones@engine"))
def test_knot_transfers(measure: Callable[..., Trial], primary: str) -> None:
    trial = measure("server=knot@forky", f"zones={ZONES}", f"hosts.primary.server={primary}", "transfer.transport=xoq")
    assert (trial.record.outcome, trial.record.reason) == ("done", "")
    assert trial.metrics["zones_seen"] == ZONES


def test_a_server_without_it_is_refused_before_the_start() -> None:
    with pytest.raises(UsageError, match="has no XoQ"):
        specs("tour", "server=bind@forky", f"zones={ZONES}", "transfer.transport=xoq")


def test_kdig_transfers_whole_zones_and_changes(tmp_path: Path) -> None:
    found = [root for root in debian.roots("forky", "peers") if "knot-dnsutils" in root.packages]
    root = (found or [debian.build("forky", "peers", ("knot-dnsutils",))])[-1]
    specs = {"server": HostSpec(address=SERVER, cpus=[0]), "client": HostSpec(address=CLIENT, cpus=[0])}
    serve = [str(paths.engine()), "serve", "zones", f"{SERVER}:53", "--transport=udp,xoq", "--count=3"]
    serve += ["--records=5000", "--changes-before=5"]
    with Network(specs, [LinkSpec(ends=("server", "client"))], directory=tmp_path) as network:
        server = process.start("serve", network.hosts["server"], serve, stdout=subprocess.PIPE)
        try:
            assert server.popen.stdout is not None
            assert any(json.loads(line)["event"] == "ready" for line in server.popen.stdout)
            whole = asked_by_kdig(network, root.path, tmp_path / "output", "AXFR")
            changes = asked_by_kdig(network, root.path, tmp_path / "output", "IXFR=3")
        finally:
            server.stop()
    assert whole.count("SOA") == 2 and "5001 records" in whole, whole[-500:]
    assert changes.count("SOA") == 2 * 3 + 2, changes


def asked_by_kdig(network: Network, root: Path, output: Path, kind: str) -> str:
    """What kdig prints of a transfer."""
    with output.open("wb") as file:
        confined = Confinement(root, [], as_root=True)
        command = ["kdig", f"@{SERVER}", "+quic", "z000001.example", kind]
        started = process.start("kdig", network.hosts["client"], command, confined=confined, stdout=file)
        try:
            code = started.popen.wait(LIMIT_S)
        finally:
            started.stop()
    assert code == 0, output.read_text()[-500:]
    return output.read_text()
