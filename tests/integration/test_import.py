"""Files that dnsperf, resperf and kxdpgun of Debian wrote here are imported, and tell what these tools printed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import DNSRIG

from dnsrig import paths
from dnsrig.analysis.read import Run, Trial
from dnsrig.confinement import BindMount, Confinement
from dnsrig.lab import process
from dnsrig.lab.network import Network
from dnsrig.report.draw import draw_all
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import debian

SUITE, PACKAGES = "forky", ("dnsperf", "knot-dnsutils")
SERVER, CLIENT = "198.18.0.2", "198.18.0.3"
LIMIT_S = 60
Tool = Callable[..., str]


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[Tool]:
    """Executes a tool against a server that loses every twentieth query; returns what it printed."""
    found = [root for root in debian.roots(SUITE, "peers") if set(PACKAGES) <= root.packages.keys()]
    root = (found or [debian.build(SUITE, "peers", PACKAGES)])[-1]
    (tmp_path / "queries.txt").write_text("".join(f"name{number}.example.com A\n" for number in range(10_000)))
    specs = {"server": HostSpec(address=SERVER, cpus=[0]), "client": HostSpec(address=CLIENT, cpus=[0])}
    with Network(specs, [LinkSpec(ends=("server", "client"))], directory=tmp_path) as network:
        serve = [str(paths.engine()), "serve", "echo", f"{SERVER}:53", "--loss", "5%"]
        server = process.start("serve", network.hosts["server"], serve, stdout=subprocess.PIPE)

        def execute(*command: str) -> str:
            confined = Confinement(root.path, [BindMount(tmp_path, "/mnt/files")], as_root=True)
            client = network.hosts["client"]
            with (tmp_path / "output").open("wb") as output:
                started = process.start(command[0], client, command, confined=confined, stdout=output)
                try:
                    assert started.popen.wait(LIMIT_S) == 0, (tmp_path / "output").read_text()
                finally:
                    started.stop()
            return (tmp_path / "output").read_text()

        try:
            assert server.popen.stdout is not None
            assert any(json.loads(line)["event"] == "ready" for line in server.popen.stdout)
            yield execute
        finally:
            server.stop()


def imported(tool: str, file: Path, to: Path) -> Trial:
    command = [*DNSRIG, "import", tool, str(file), "--as", tool, "--to", str(to)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout.strip()) == (0, str(to)), done.stderr
    (trial,) = [trial for trial in Run.open(to).trials if trial.record.spec.imported.tool == tool]  # type: ignore[union-attr]
    return trial


@pytest.mark.full
def test_dnsperf(tool: Tool, tmp_path: Path) -> None:
    options = ("-O", "latency-histogram", "-O", "verbose-interval-stats", "-S", "1")
    said = tool("dnsperf", "-s", SERVER, "-d", "/mnt/files/queries.txt", "-Q", "500", "-l", "3", "-t", "1", *options)
    (tmp_path / "dnsperf.txt").write_text(said)
    trial = imported("dnsperf", tmp_path / "dnsperf.txt", tmp_path / "run")
    end = said.split("\nStatistics:")[1]
    counts = {name: int(count) for name, count in re.findall(r"Queries (\w+): +(\d+)", end)}
    assert (trial.load.sent, trial.load.answered, trial.load.timeouts) == tuple(counts.values())
    assert trial.load.timeouts > 0 and sum(trial.load_intervals["answered"]) == trial.load.answered
    assert trial.latency is not None and trial.latency.total("sent").total == trial.load.sent
    mean, least, largest = (float(value) * 1e9 for value in re.findall(r"(?:\(s\):|min|max) +(0\.\d+)", end)[:3])
    told = trial.load.sent_latency_ns
    # It prints figures of what was answered; the others took the timeout of a second, at least.
    mean = (mean * trial.load.answered + 1e9 * trial.load.timeouts) / trial.load.sent
    assert largest <= 1e9 and (told["mean"], told["min"], told["max"]) == pytest.approx((mean, least, 1e9))
    # The mean lies between the means of the lower and of the upper ends of its buckets.
    lower, upper = (trial.latency.total(tag).mean_ns or 0.0 for tag in (trial.latency.lower, "sent"))
    assert lower * 0.998 <= mean + 500 and mean - 500 <= upper * 1.002


@pytest.mark.full
def test_resperf(tool: Tool, tmp_path: Path) -> None:
    plot = ("-P", "/mnt/files/resperf.plot")
    said = tool("resperf", "-s", SERVER, "-d", "/mnt/files/queries.txt", "-m", "1000", "-r", "3", "-t", "1", *plot)
    trial = imported("resperf", tmp_path / "resperf.plot", tmp_path / "run")
    highest = re.search(r"Maximum throughput: +([\d.]+)", said)
    assert highest is not None
    assert trial.value("capacity_qps") == pytest.approx(float(highest[1]), abs=0.01)
    # It leaves out its last bin, in which it may have stopped early.
    assert 0 < trial.load.sent < int(re.findall(r"Queries sent: +(\d+)", said)[0])
    assert any("last bin" in text for text in trial.record.imported.missing)  # type: ignore[union-attr]


def test_kxdpgun(tool: Tool, tmp_path: Path) -> None:
    options = ("-t", "2", "-Q", "500", "-j", "-S", "1000", "-I", "server")
    said = tool("kxdpgun", "-i", "/mnt/files/queries.txt", *options, SERVER)
    (tmp_path / "kxdpgun.json").write_text(said)
    trial = imported("kxdpgun", tmp_path / "kxdpgun.json", tmp_path / "run")
    total = json.loads(said.splitlines()[-1])
    assert total["type"] == "stats_sum"
    assert (trial.load.sent, trial.load.answered) == (total["queries"], total["responses"])
    assert trial.load.answered < trial.load.sent and trial.load.asked_qps == 500
    assert trial.latency is None and trial.value("sent_p99_ms") is None
    run = Run.open(tmp_path / "run")
    assert draw_all(run) and not list(run.failures)
