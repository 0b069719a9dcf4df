"""Two hosts joined by a link, an instrument on one and a server of known truth on the other: what the benches share.

The instrument has CPU 0 for itself, the reflector CPU 1. Peers come from a Debian suite's packages, unpacked beside
dnsrig's servers; nothing is installed on the machine.
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from smoke import SMOKE, sized

from dnsrig import paths
from dnsrig.confinement import BindMount, Confinement
from dnsrig.lab import process
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.lab.process import Process
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import debian
from dnsrig.servers.debian import Root

PEERS = ("dnsperf", "knot-dnsutils", "bind9-dnsutils", "iperf3", "openssl")
SUITE = "forky"
INSTRUMENT, REFLECTOR = "instrument", "reflector"
CPU_OF = {INSTRUMENT: 0, REFLECTOR: 1}
NAMES = 1000
START_LIMIT_S = 10.0
PAUSE_S = sized(0.5, smoke=0.0)


@functools.cache
def installed(name: str, *packages: str) -> Root:
    """The root file system of ``packages``. A smoke run takes one from the cache, because the mirror takes seconds."""
    there = [root for root in debian.roots(SUITE, name) if root.packages.keys() >= {*packages}] if SMOKE else []
    return there[-1] if there else debian.build(SUITE, name, packages)


@dataclass(frozen=True)
class Cost:
    """What a tool did, and what it cost."""

    queries: float
    """Or records, or zones: whatever was asked for."""
    duration_s: float
    instrument_ns: float
    """CPU time a query of the instrument's host: the process, the kernel for it, and softirqs."""
    pair_ns: float
    """CPU time a query of both hosts."""
    details: dict[str, Any]

    @property
    def rate(self) -> float:
        return self.queries / self.duration_s


class Pair:
    """The two hosts; end what was started by leaving the context of `pair`."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network, self.folder = network, folder
        self.root = installed("peers", *PEERS).path
        self.queries = folder / "queries.txt"
        self.queries.write_text("".join(f"name{number}.example.com A\n" for number in range(NAMES)))

    @property
    def reflector(self) -> Host:
        return self.network.hosts[REFLECTOR]

    @property
    def instrument(self) -> Host:
        return self.network.hosts[INSTRUMENT]

    @contextmanager
    def echo(self, *options: str) -> Iterator[None]:
        """The engine's reflector on its host."""
        with self.serving([str(paths.engine()), "serve", "echo", str(self.reflector.address), *options]):
            yield

    @contextmanager
    def zones(self, *options: str) -> Iterator[Process]:
        """The engine's synthetic primary in the reflector's place."""
        with self.serving([str(paths.engine()), "serve", "zones", str(self.reflector.address), *options]) as server:
            yield server

    @contextmanager
    def serving(self, command: list[str]) -> Iterator[Process]:
        """A server of the engine's, which says when it is ready."""
        started = process.start(command[2], self.reflector, command, stdout=subprocess.PIPE)
        try:
            assert started.popen.stdout is not None
            for line in started.popen.stdout:
                if json.loads(line)["event"] == "ready":
                    break
            # What it prints at its end may not fit into the pipe.
            reader = Thread(target=list, args=(started.popen.stdout,), daemon=True)
            reader.start()
            yield started
        finally:
            started.stop()

    def load(self, *options: str, meanwhile: Callable[[Process], None] | None = None) -> dict[str, Any]:
        """`load` on its host; the summary."""
        return self.engine("load", "--queries", str(self.queries), *options, meanwhile=meanwhile)

    def engine(
        self, subcommand: str, *options: str, meanwhile: Callable[[Process], None] | None = None
    ) -> dict[str, Any]:
        """A subcommand of the engine on the instrument's host, against the server; its summary."""
        return self.events(subcommand, str(self.reflector.address), *options, meanwhile=meanwhile)[-1]

    def events(self, *arguments: str, meanwhile: Callable[[Process], None] | None = None) -> list[dict[str, Any]]:
        """What the engine says on the instrument's host, the summary last."""
        output = self._run([str(paths.engine()), *arguments], meanwhile=meanwhile)
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    def peer(self, *command: str) -> str:
        """A peer on the instrument's host; its output."""
        return self._run(list(command), root=True)

    @contextmanager
    def iperf_server(self, *options: str) -> Iterator[None]:
        """iperf3 in the reflector's place."""
        command = ["iperf3", "--server", "--forceflush", *options]
        started = process.start(
            "iperf3",
            self.reflector,
            command,
            confined=Confinement(self.root, as_root=True),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert started.popen.stdout is not None
            next(line for line in started.popen.stdout if "listening" in line)
            # Nothing reads the rest, but the output for some tests fits into the pipe.
            yield
        finally:
            started.stop()

    def iperf(self, address: str, *options: str, duration_s: int) -> float:
        """Bits a second that iperf3 brings from ``address``, the reflector's, to the instrument, as received."""
        text = self.peer("iperf3", "--client", address, "--reverse", "--json", "--time", str(duration_s), *options)
        return float(json.loads(text)["end"]["sum_received"]["bits_per_second"])

    def _run(self, command: list[str], root: bool = False, meanwhile: Callable[[Process], None] | None = None) -> str:
        view: dict[str, Any] = {}
        if root:
            view = {"confined": Confinement(self.root, [BindMount(self.folder, "/mnt")], as_root=True)}
        with tempfile.TemporaryFile("w+") as output:
            started = process.start(command[0], self.instrument, command, stdout=output, stderr=output, **view)
            if meanwhile is not None:
                meanwhile(started)
            status = started.popen.wait()
            output.seek(0)
            text = output.read()
        if status != 0:
            raise RuntimeError(f"{' '.join(command)}: {started.how_it_ended()}\n{text[-500:]}")
        return text

    def cost(self, work: Callable[[], tuple[float, float, dict[str, Any]]]) -> Cost:
        """CPU time of both hosts while ``work`` runs, which returns queries, their seconds, and details."""
        hosts = (self.instrument, self.reflector)
        before = [_cpu_s(host) for host in hosts]
        queries, duration_s, details = work()
        used = [_cpu_s(host) - earlier for host, earlier in zip(hosts, before)]
        per_query = 1e9 / max(queries, 1)
        return Cost(queries, duration_s, used[0] * per_query, sum(used) * per_query, details)


@contextmanager
def pair(source_addresses: Sequence[str] = (), server_ranges: Sequence[str] = ()) -> Iterator[Pair]:
    """``source_addresses``: more addresses of the instrument's host; ``server_ranges``: of the reflector's."""
    specs = {
        INSTRUMENT: HostSpec(address="198.18.0.1", cpus=[CPU_OF[INSTRUMENT]], source_addresses=list(source_addresses)),
        REFLECTOR: HostSpec(address="198.18.0.2", cpus=[CPU_OF[REFLECTOR]], server_ranges=list(server_ranges)),
    }
    with (
        tempfile.TemporaryDirectory(prefix="dnsrig-bench-") as folder,
        Network(specs, [LinkSpec(ends=(INSTRUMENT, REFLECTOR))]) as network,
    ):
        os.sched_setaffinity(0, {CPU_OF[INSTRUMENT]})
        yield Pair(network, Path(folder))


def _cpu_s(host: Host) -> float:
    """CPU seconds of all processes of a host, with the softirqs that ran in their time, and of its CPUs' ksoftirqd.

    Without CONFIG_IRQ_TIME_ACCOUNTING the kernel charges softirqs to the process that they interrupt. For packets that
    are sent, this is the sender.
    """
    usage_us = 0.0
    for folder in host.cgroups:
        if (file := folder / "cpu.stat").exists():
            usage_us = float(re.search(r"usage_usec (\d+)", file.read_text())[1])  # type: ignore[index]
    return usage_us / 1e6 + sum(_ksoftirqd_s(cpu) for cpu in host.spec.cpus)


def _ksoftirqd_s(cpu: int) -> float:
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == f"ksoftirqd/{cpu}":
                return int((comm.parent / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
    return 0.0


def interleaved(
    rounds: int, tools: Sequence[str], measure: Callable[[str], Any], seed: int = 1
) -> dict[str, list[Any]]:
    """Every tool once a round, in a shuffled order."""
    found: dict[str, list[Any]] = {tool: [] for tool in tools}
    order = random.Random(seed)
    for _ in range(rounds):
        for tool in order.sample(list(tools), len(tools)):
            found[tool].append(measure(tool))
            time.sleep(PAUSE_S)
    return found


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median and range."""
    return f"{statistics.median(values):.{digits}g} [{min(values):.{digits}g}..{max(values):.{digits}g}]"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Round by round: what drifts hits both."""
    return [mine / other for mine, other in zip(ours, theirs)]
