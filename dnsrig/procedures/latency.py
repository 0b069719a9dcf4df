"""Latency: queries at a fixed rate against a server that serves, each counted from the moment at which it was due.

The server under test has all its zones before anything is asked. Options:

- ``serve_as``: what the server under test is: ``primary``, ``secondary``, ``resolver`` or ``frontend``; its host has
  that name
- ``behind``: the server that a frontend stands before: the host ``primary``, ``secondary`` or ``resolver``
- ``rate_qps``: queries a second; 0: ``rate_share`` of the capacity, which a short ramp finds in `warmup` (options
  ``ramp_…``, see `capacity`), rounded down to two significant digits so that repeats agree
- ``poisson``: whether queries are due at random moments instead of even ones
- ``duration_s``, ``interval_s``: of the measurement, and of the intervals for which distributions are kept
- ``warmup_s``: as much load before, which is not counted; 0: none
- ``transport`` (``udp``, ``tcp``, ``dot``, ``doh``, ``doq``), ``clients`` (sockets or connections), ``timeout_s``
- ``proxy_protocol``: whether an address and a port of each client are announced with the PROXY protocol, version 2; the
  server must be set up for it
- ``doh_path``: path of the server's URI template over DoH
- ``queries_per_connection``: 0: one connection a client; ``resumption`` of TLS sessions; ``early_data``: queries leave
  with the first flight of a resumed session (0-RTT) if the server permits it, over DoH only with ``doh_method`` ``get``
- ``queried_share``: names come from this share of the zones, the first ones; ``popularity`` of zones (``uniform``,
  ``zipf``, ``zipf:S``); ``missing_share`` of the names does not exist; ``edns_bytes``: 0: no EDNS
- ``changes``: what happens on the primary meanwhile: ``none``, members of its ``catalog`` leave and come back (with a
  ``queried_share`` below 1 only such as are not asked for), or records of its ``zones`` change; ``changes_per_s``. The
  instrument `change` makes them by dynamic updates; `zones@engine` makes them by itself, so that the primary is never
  the limit
- ``transfers``: whether the zones of the primary are transferred meanwhile, again and again, from a host of its own:
  ``none``, or by the policy ``one``, ``reused`` or ``pipelined`` with ``transfers_window`` (see `transfer-load`)
- ``generators``: so many hosts ask, ``generator-1`` and so on, each its share of one schedule, from one moment on; they
  can be on other machines (``hosts.generator-1.machine``). 0: the observer asks
- ``query_rows``: number of queries with a row in ``queries.arrow``: when it was due and sent, its latency
- ``settle_s``, ``drain_s``: the rest after the start and at the end
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.procedures import Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import load_arguments, resolver_statistics, serving
from dnsrig.rundir import Scalar

DESCRIPTION = "queries at a fixed rate: latency from the moment at which each was due, to the last percentile"
MAIN_METRIC = "p99_ms"
OF_RUNNING_SERVER = True
OWN_QUERIES = True
OPTIONS: dict[str, Scalar] = {
    **serving.OPTIONS,
    "rate_qps": 0.0,
    "rate_share": 0.2,
    "poisson": False,
    "duration_s": 10.0,
    "interval_s": 1.0,
    "warmup_s": 1.0,
}
RANGES, CHOICES = load_arguments.RANGES, serving.CHOICES
GRACE_S = 30.0
"""How long `load` may take beyond its duration and the last timeout."""
hosts, links, far = serving.hosts, serving.links, serving.far
validate, checks = serving.validate, serving.checks


def expected_s(options: Mapping[str, Any]) -> float:
    search = 0.0 if float(options["rate_qps"]) else load_arguments.ramp_expected_s(options)
    return search + float(options["warmup_s"]) + float(options["duration_s"])


def measure(context: TrialContext) -> Result:
    duration_s = float(context.option("duration_s"))
    serving.bring_up(context)
    with context.phase("warmup"):
        serving.settle(context)
        rate_qps = float(context.option("rate_qps"))
        if not rate_qps:
            ramp = serving.search(context, "ramp", limit_s=context.spec.limit_s)
            if ramp.capacity_qps is None:
                return serving.held_nothing(context, ramp)
            rate_qps = load_arguments.rounded_down(ramp.capacity_qps * float(context.option("rate_share")))
        if warmup_s := float(context.option("warmup_s")):
            serving.ask(context, "warmup", rate_qps, warmup_s, limit_s=warmup_s + GRACE_S)
    limit_s = duration_s + float(context.option("timeout_s")) + GRACE_S
    with (
        serving.changing(context, duration_s=limit_s, expected_s=duration_s),
        context.profiled(),
        resolver_statistics.sampled(context),
        context.phase("measure"),
    ):
        with serving.transferring(context, duration_s=limit_s):
            asked = serving.ask(context, "load", rate_qps, duration_s, limit_s=limit_s, out=context.directory)
        context.servers.count_threads()
    serving.drain(context)
    load = asked()
    if reason := serving.why_no_transfers(context):
        return Result("server-failed", reason)
    return serving.concluded(load)
