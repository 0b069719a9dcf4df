"""Transfer load: the instrument `transfer` takes all zones of a primary, as a secondary would that stores nothing.

What is measured is the primary and the policy by which connections are used; there is no secondary that could be slow.
The primary has all its zones before anything is asked; `transfer` runs on the host `client`. Options:

- ``policy``: ``one`` connection a zone, ``reused`` (the next zone is asked for when the one before is complete),
  ``pipelined``: up to ``window`` zones are asked for at once on each of ``connections``; ``close``: by ``fin`` or
  ``rst``
- ``soa``: ask for the SOA first: ``none``, by ``udp``, on the ``same`` connection; ``ixfr_serial``: ask for IXFR from
  this serial (0: AXFR)
- ``secondaries``: so many, each takes all zones; each has an address of its own
- ``resumption`` of TLS sessions; ``verify``: how the primary's certificate is checked: ``none``, ``ca``, ``pin``
- ``quickack``, ``nagle``, ``congestion``: of the client's sockets (tcp(7)); by default TCP_NODELAY, and the host's
  congestion control; ``quic_congestion``: the client's congestion control over QUIC (``cubic``, ``newreno``, ``bbr``)
- ``retries`` of a zone that failed, each ``retry_after_s`` later; ``timeout_s``: without a byte of a transfer;
  ``threads`` of the instrument
- ``repeat``: begin again until ``duration_s`` are over
- ``settle_s``, ``drain_s``: the rest after the start and at the end

A trial is `done` when every zone has arrived. It is a `timeout` when its time was over before, and also when the
primary refused zones or cut them off each time: the reason says which. The rates of such a trial count all the same:
they are of what arrived until then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import serving, transfer_instrument
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = (
    "zones taken from a primary by the instrument itself, which stores nothing: zones a second by connection policy"
)
MAIN_METRIC = "zones_per_s"
OF_RUNNING_SERVER = True
WHY_NO_OWN_QUERIES = (
    "it transfers zones and asks nothing else; latency with options.transfers asks during transfers (busy-primary)"
)
OPTIONS: dict[str, Scalar] = {
    **transfer_instrument.OPTIONS,
    "repeat": False,
    "duration_s": 10.0,
    "settle_s": 0.3,
    "probe_rate_per_s": 10_000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
CHOICES = transfer_instrument.CHOICES
GRACE_S = 30.0
"""How long `transfer` may take beyond its limit to say what it saw."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    client = HostRole(source_addresses=int(options["secondaries"]) - 1)
    return {"primary": HostRole(role="primary", under_test=True), "client": client}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("client", "primary")]


def far(hosts: Iterable[str], options: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [("primary", "client")]


def validate(spec: TrialSpec) -> None:
    if spec.runs_already:
        serving.check_transfers(spec)


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["duration_s"]) if options["repeat"] else 0.0


def checks(spec: TrialSpec) -> list[str]:
    several = spec.dataset.zones > 1
    found = ["connections-tls", *(["connections-per-zone"] if several else [])]
    found += ["outstanding"] if several and spec.options["policy"] == "pipelined" else []
    return [
        *found,
        *(["sessions-resumed"] if several and spec.transfer.tls and spec.options["policy"] == "one" else []),
    ]


def measure(context: TrialContext) -> Result:
    repeats = bool(context.option("repeat"))
    limit_s = float(context.option("duration_s")) if repeats else context.spec.limit_s
    with context.phase("setup"):
        context.start_watch()
        context.start_ready("primary", limit_s=float(context.option("ready_limit_s")))
        time.sleep(float(context.option("settle_s")))
    words = [
        *transfer_instrument.policy(context.spec.options),
        f"--duration-s={limit_s:g}",
        *(["--repeat"] if repeats else []),
    ]
    with context.profiled(), context.phase("measure"):
        transfer = context.instruments.start_transfer("transfer", "client", "primary", words)
        summary = context.wait(transfer, limit_s=limit_s + GRACE_S)
        context.servers.count_threads()
    context.drain()
    return transfer_instrument.concluded(
        summary, zones=context.spec.dataset.zones * int(context.option("secondaries")), limit_s=limit_s
    )
