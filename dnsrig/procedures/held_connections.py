"""Held connections: what connections cost a server that are open and mostly idle, and what another client sees
meanwhile.

In `warmup` the observer asks alone. Then the host ``holder`` opens its connections at a bounded rate, each with a
query. In `measure` the holder asks a query on each connection every ``hold_s``, and the observer asks at its own rate,
by default with a new connection for each query. Memory and CPU time of a connection are differences within the trial:
to the time before the opening. Options as for `latency` (``transport`` applies to both), without changes, transfers and
ramps, and:

- ``held``: number of connections to open; ``open_per_s``: the rate of opening
- ``hold_s``: time between two queries on a connection
- ``held_as``: ``idle``: the holder reads answers; ``half-open``: it sends only the first byte of a query, over
  DoT and DoH nothing at all; ``slow-reader``: it asks and never reads
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.instrument import Instrument
from dnsrig.procedures.parts import load_arguments, serving
from dnsrig.rundir import HostDuties, Scalar, TrialSpec
from dnsrig.runs.held import INSTRUMENT

DESCRIPTION = "memory and CPU time of connections that are open and mostly idle, and the latency of another client"
MAIN_METRIC = "held_memory_bytes"
OWN_QUERIES = True
HOLDER = "holder"
PORTS = 28_000
"""Connections from one source address: Linux has 28,232 ports for them (ip_local_port_range)."""
HELD_MOST = 1_000_000
"""The most connections that `load` holds."""
OPTIONS: dict[str, Scalar] = {
    **serving.OPTIONS,
    "transport": "tcp",
    "clients": 4,
    "queries_per_connection": 1,
    "rate_qps": 50.0,
    "poisson": False,
    "duration_s": 10.0,
    "interval_s": 1.0,
    "warmup_s": 2.0,
    "held": 1000,
    "held_as": "idle",
    "hold_s": 10.0,
    "open_per_s": 500,
}
RANGES = {
    **load_arguments.RANGES,
    "rate_qps": (0.01, 1e6),
    "warmup_s": (0.5, 3600),
    "held": (1, HELD_MOST),
    "hold_s": (0.01, 86_400),
    "open_per_s": (1, 100_000),
}
CHOICES = {
    **serving.CHOICES,
    "serve_as": ("primary", "resolver", "frontend"),
    "changes": ("none",),
    "transfers": ("none",),
    "transport": ("tcp", "dot", "doh", "doq"),
    "held_as": ("idle", "half-open", "slow-reader"),
}
GRACE_S = 30.0
SEED = 14
LONGER_S = 10.0
"""The holder goes on for so much longer than the measurement needs, and is then stopped."""
validate = serving.validate


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """The hosts of a load, and the host of the held connections, with as many addresses as its ports need."""
    if options["transport"] == "doq" and options["held_as"] != "idle":
        raise UsageError(f'options.held_as = "{options["held_as"]}" needs TCP', hint='set options.transport = "tcp"')
    more = math.ceil(int(options["held"]) / PORTS) - 1
    return {**serving.hosts(options), HOLDER: HostRole(source_addresses=more)}


def links(hosts: Mapping[str, HostDuties]) -> list[tuple[str, str]]:
    """The holder reaches the server under test, as the observer does."""
    found = serving.links({name: host for name, host in hosts.items() if name != HOLDER})
    return [*found, (next(name for name, host in hosts.items() if host.under_test), HOLDER)]


def checks(spec: TrialSpec) -> list[str]:
    """The holder's connections are checked. Queries that starve at the server's limit are a result."""
    return ["connections-opened"]


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["warmup_s"]) + _opening_s(options) + float(options["duration_s"])


def measure(context: TrialContext) -> Result:
    rate_qps, duration_s = float(context.option("rate_qps")), float(context.option("duration_s"))
    timeout_s, warmup_s = float(context.option("timeout_s")), float(context.option("warmup_s"))
    serving.bring_up(context)
    with context.phase("warmup"):
        serving.settle(context)
        serving.ask(context, "warmup", rate_qps, warmup_s, limit_s=warmup_s + GRACE_S)
        holder = _start_holder(context, duration_s + LONGER_S)
        context.wait(holder, limit_s=_opening_s(context.spec.options) + timeout_s + GRACE_S, until="opened")
    limit_s = duration_s + timeout_s + GRACE_S
    with context.profiled(), context.phase("measure"):
        asked = serving.ask(context, "load", rate_qps, duration_s, limit_s=limit_s, out=context.directory)
        context.servers.count_threads()
    context.instruments.stop(INSTRUMENT)
    serving.drain(context)
    return serving.concluded(asked())


def _opening_s(options: Mapping[str, Any]) -> float:
    return int(options["held"]) / int(options["open_per_s"])


def _start_holder(context: TrialContext, duration_s: float) -> Instrument:
    """Start the load that holds connections. It prints `opened` when all were opened, and goes on for
    ``duration_s``."""
    spec = context.spec
    options, recursive = spec.options, serving.answering(spec.options) == "resolver"
    zones = serving.queried_zones(context)
    words = [
        *load_arguments.queries(options, zones, seed=SEED, recursive=recursive, asked=spec.queries),
        f"--transport={options['transport']}",
        f"--clients={options['held']}",
        f"--hold={options['hold_s']}s",
        f"--open-rate={options['open_per_s']}",
        f"--held-as={options['held_as']}",
        f"--timeout={options['timeout_s']}s",
        f"--duration={duration_s:g}s",
        *(f"--source={address}" for address in _sources(spec)),
    ]
    return context.instruments.start_load(INSTRUMENT, spec.subject, words, host=HOLDER)


def _sources(spec: TrialSpec) -> list[str]:
    """The addresses of the holder, if it needs several."""
    host = spec.hosts[HOLDER]
    return [host.address, *host.source_addresses] if host.source_addresses else []
