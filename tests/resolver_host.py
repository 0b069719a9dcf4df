"""Real servers on hosts of the lab, as their drivers configure them; a resolver resolves from hints."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import world_server
from placement_data import changed, placed

from dnsrig.lab import host as lab_host
from dnsrig.lab import process
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.procedures.context import placing
from dnsrig.rundir import HostSpec, LinkSpec, Resolving
from dnsrig.servers import driver, sources
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import HINTS_FILE

CPUS = sorted(os.sched_getaffinity(0))
START_LIMIT_S = 30.0
ANSWER_LIMIT_S = 10.0
RESOLVER = "198.18.0.2"


@contextmanager
def resolver(host: Host, placement: Placement) -> Iterator[None]:
    with server(host, placement) as log:
        wait_for(host, RESOLVER, "id.server", "TXT", log)
        yield


@contextmanager
def between_clients_and_world(
    folder: Path, kind: str, world: world_server.World, internet: str, clients: str
) -> Iterator[tuple[Host, Host]]:
    """The host of a simulated Internet at the address ``internet``, from which clients of the network ``clients`` ask
    as well, and that of the resolver, which runs."""
    specs = {
        "resolver": HostSpec(address=RESOLVER, cpus=CPUS[-1:]),
        "internet": HostSpec(address=internet, cpus=CPUS[:1]),
    }
    placement = place(folder / "resolver", kind, Resolving())
    with Network(specs, [LinkSpec(ends=("internet", "resolver"))], directory=folder) as network:
        far, ours = network.hosts["internet"], network.hosts["resolver"]
        world_server.route(far, ours)
        for host, words in ((far, ["local", clients, "dev", "lo"]), (ours, [clients, "via", internet])):
            subprocess.run(["ip", "-n", host.namespace, "route", "add", *words], check=True)
        with world_server.serve(world, far):
            (placement.directory / HINTS_FILE).write_text(world.hints)
            with resolver(ours, placement):
                yield far, ours


@contextmanager
def server(host: Host, placement: Placement) -> Iterator[Path]:
    """It starts, and writes the log that is yielded."""
    kind = driver(placement.source.kind)
    kind.configure(placement)
    placement.dataset.mkdir(parents=True, exist_ok=True)
    log = placement.directory / "server.log"
    with log.open("w") as output:
        started = process.start(
            kind.kind,
            host,
            kind.command(placement),
            confined=placing.confinement(placement),
            workdir=kind.workdir(placement),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        started.stop_signal = kind.stop_signal
        try:
            yield log
        finally:
            started.stop()


def ask(
    host: Host, address: str, name: str, kind: str = "A", *, limit_s: float = ANSWER_LIMIT_S
) -> dns.message.Message:
    query = dns.message.make_query(name, kind, want_dnssec=True)
    with lab_host.inside(host.namespace):
        return dns.query.udp(query, address, timeout=limit_s, ignore_unexpected=True)


def wait_for(host: Host, address: str, name: str, kind: str, log: Path) -> None:
    """Until it answers anything."""
    until = time.monotonic() + START_LIMIT_S
    while True:
        try:
            ask(host, address, name, kind, limit_s=0.5)
            return
        except (dns.exception.Timeout, OSError):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)


def place(folder: Path, kind: str, resolving: Resolving) -> Placement:
    source = sources.find(f"{kind}@forky") or sources.install(f"{kind}@forky")
    made = placed(folder, kind, "resolver", root=sources.root(source), server=source, from_hints=True)
    return changed(made, address=RESOLVER, cpus=CPUS[-1:], resolving=resolving, settings={})
