"""A resolver's own counters, each second of the measurement, by the clock of all other rows."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import polars as pl

from dnsrig.analysis.row_files.statistics import STATISTICS
from dnsrig.lab import host
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import resolver_level
from dnsrig.servers.counters import Channel, Counters
from dnsrig.servers.placement import Placement

INTERVAL_S = 1.0
MOST_SAMPLES = 100_000
"""Limit of the samples: more than a day."""


@dataclass
class _Sampler:
    channel: Channel
    placement: Placement
    namespace: str
    rows: list[tuple[int, str, float]] = field(default_factory=list)
    samples: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.ended.wait(INTERVAL_S) and self.samples < MOST_SAMPLES:
            self.sample()

    def sample(self) -> None:
        """Take one sample. A sample that fails is missing: the server may be busy, or its build may have no
        statistics."""
        time_ns = time.monotonic_ns()
        with suppress(OSError):
            counted = ask(self.channel, self.placement, self.namespace)
            self.rows += [(time_ns, name, value) for name, value in counted.items()]
            self.samples += 1


def ask(channel: Channel, placement: Placement, namespace: str) -> Counters:
    """The counters of a server now. Raises OSError."""
    address = placement.address
    with ExitStack() as stack:
        if channel.port:
            with host.inside(namespace):
                connection = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
            where: str | tuple[str, int] = (str(address), channel.port)
        else:
            connection = socket.socket(socket.AF_UNIX)
            folder = os.open(placement.state, os.O_PATH)
            stack.callback(os.close, folder)
            where = f"/proc/self/fd/{folder}/{channel.socket}"  # its own path may be too long (unix(7))
        stack.enter_context(connection)
        connection.settimeout(INTERVAL_S)
        connection.connect(where)
        return channel.ask(connection)


@contextmanager
def sampled(context: TrialContext) -> Iterator[None]:
    """Sample a resolver under test before, each second during, and after the code inside. Other servers are not
    sampled."""
    name = context.spec.subject
    able = resolver_level.able(context.spec)
    if able is None:
        yield
        return
    sampler = _Sampler(able.statistics, context.servers.placements[name], context.host(name).namespace)
    sampler.sample()
    thread = threading.Thread(target=sampler.run, name="statistics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        sampler.ended.set()
        thread.join()
        sampler.sample()
        rows = pl.DataFrame(sampler.rows, schema=dict(STATISTICS.schema), orient="row")
        rows.write_ipc_stream(context.directory / STATISTICS.name)
        over_tcp = sampler.samples if sampler.channel.port else 0
        context.summaries["statistics"] = {"samples": sampler.samples, "connections": over_tcp}
