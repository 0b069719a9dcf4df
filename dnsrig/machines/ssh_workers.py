"""The machines of a TOML file as a Dask cluster: a scheduler in this process, and a worker on each, started over SSH.

All traffic goes through the SSH connections, so each machine listens on loopback only. There it is encrypted by a key
of this run, because a machine may have users who should not become root through its worker.
"""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dnsrig.errors import DnsrigError
from dnsrig.machines import dask, dask_access, document, packages, worker
from dnsrig.machines.connection import END_LIMIT_S, Connection
from dnsrig.machines.dask import Worker
from dnsrig.machines.dask_access import Keys, Role
from dnsrig.machines.document import MachineDocument
from dnsrig.machines.packages import Part

if TYPE_CHECKING:
    from distributed import Security

PORTS = range(20_000, 32_768)
"""Ports of a machine's loopback, below those that Linux assigns by itself (ip(7), ip_local_port_range)."""
PORT_TAKEN = ("Address already in use", "forwarding failed")
ATTEMPTS = 3
"""Attempts to connect, each with other ports."""
START_LIMIT_S = 120.0
LOOK_S = 1.0
"""Pause between two looks at a connection, whether it is lost."""
PAUSE_LIMIT_S = 30.0
"""Each failed attempt to connect again doubles the pause before the next one, up to this."""
OWN_ROLES: tuple[Role, ...] = ("client", "scheduler")
"""The roles that this process has in Dask."""
QUIET = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    **dask.SHORT_LOGS,
}


@contextlib.contextmanager
def workers(path: Path) -> Iterator[list[Worker]]:
    """Start a worker on each machine of the file at ``path``; they end with the context."""
    told = document.read(path)
    if shutil.which("ssh") is None:
        raise DnsrigError("the program ssh is missing", hint="install OpenSSH's client (openssh-client)")
    dask.check_installed()
    keys = dask_access.make_keys(dask_access.ALWAYS)
    security = own_security(keys)
    with _scheduler(security) as address:
        links = [Link(name, one, told.config, address, keys["worker"]) for name, one in told.machines.items()]
        try:
            start(links, packages.parts())
            with _cluster(address, security) as places:
                yield places
        finally:
            end(links)


@contextlib.contextmanager
def _cluster(address: str, security: Security) -> Iterator[list[Worker]]:
    from distributed.versions import VersionMismatchWarning

    with contextlib.ExitStack() as stack:
        with warnings.catch_warnings():
            # It is about packages that are not needed: what is needed was brought from this machine.
            warnings.simplefilter("ignore", VersionMismatchWarning)
            places = stack.enter_context(dask.workers(address, security))
        yield places


@contextlib.contextmanager
def _scheduler(security: Security) -> Iterator[str]:
    """Start a scheduler, and yield its address. It is a thread of this process, so it always ends with the run."""
    import dask as settings
    from distributed import Scheduler, SpecCluster

    options = {
        "protocol": "tls://",
        "host": "127.0.0.1",
        "port": 0,
        "security": security,
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        settings.config.set(QUIET),
        SpecCluster(
            scheduler={"cls": Scheduler, "options": options},
            security=security,
            silence_logs=logging.CRITICAL,  # the run itself reports what is lost
        ) as cluster,
    ):
        yield cluster.scheduler_address


def own_security(keys: Mapping[Role, Keys]) -> Security:
    return dask_access.security({role: keys[role] for role in OWN_ROLES})


def start(links: Sequence[Link], parts: Sequence[Part]) -> None:
    """Start all, side by side. Raises DnsrigError if one cannot be started."""
    with ThreadPoolExecutor(len(links)) as pool:
        started = [pool.submit(link.start, parts) for link in links]
        done, _ = wait(started, return_when=FIRST_EXCEPTION)
        if failed := [error for one in done if (error := one.exception())]:
            end(links)
            raise failed[0]


def end(links: Sequence[Link]) -> None:
    """End all, side by side."""
    for link in links:
        link.tell_end()
    for link in links:
        link.wait()


class Link:
    """The SSH connection to one machine, with a worker at its far end. If it is lost, it is made again."""

    def __init__(self, name: str, machine: MachineDocument, config: str, scheduler: str, keys: Keys) -> None:
        self.name, self._connection = name, Connection(name, machine, config)
        self._scheduler, self._keys = scheduler, keys
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None

    def start(self, parts: Sequence[Part]) -> None:
        """Connect, and keep the worker. Raises DnsrigError if no worker can be started."""
        self._connect(parts)
        self._keeper = threading.Thread(target=self._keep, args=(parts,), daemon=True)
        self._keeper.start()

    def tell_end(self) -> None:
        self._ended.set()
        if self._keeper is None:
            self._connection.hang_up()

    def wait(self) -> None:
        if self._keeper is not None:
            self._keeper.join(2 * END_LIMIT_S)

    def _keep(self, parts: Sequence[Part]) -> None:
        """Connect again whenever the connection is lost."""
        pause_s = LOOK_S
        while not self._ended.wait(pause_s):
            if self._connection.is_lost:
                try:
                    self._connect(parts)
                    pause_s = LOOK_S
                except Exception:  # whatever it is, the run reports that the machine is lost
                    pause_s = min(2 * pause_s, PAUSE_LIMIT_S)
        self._connection.hang_up()

    def _connect(self, parts: Sequence[Part]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            there, contact, here = random.sample(PORTS, 2), free_port(), port_of(self._scheduler)
            forwards = [f"-R127.0.0.1:{there[0]}:127.0.0.1:{here}", f"-L127.0.0.1:{contact}:127.0.0.1:{there[1]}"]
            try:
                self._connection.open(
                    parts, worker.__name__, START_LIMIT_S, forwards, name=self.name, port=there[1],
                    scheduler=f"tls://127.0.0.1:{there[0]}", contact=f"tls://127.0.0.1:{contact}", keys=asdict(self._keys),
                )  # fmt: skip
                return
            except DnsrigError:
                self._connection.hang_up()
                if attempt == ATTEMPTS or not any(
                    word in line for line in self._connection.said for word in PORT_TAKEN
                ):
                    raise


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])
