"""Bulk: one connection over a far path for a fixed time. Its throughput shows what the sender's congestion control
makes of the path.

The instrument `transfer`, on the host ``client`` at the other end of the path, transfers a zone from the primary, and
begins again when it has the whole zone. The zone should be larger than what can arrive in the time (``zones@engine``
with the setting ``large``). Nothing is stored. The TCP connections of both ends are listed meanwhile
(``sockets.arrow``).
Options:

- ``duration_s``: duration from the start of the instrument, so that the handshake and slow start are part of it
- ``quickack``, ``nagle``, ``congestion``: options of the client's sockets (tcp(7)). The congestion control of the
  sender, which matters, is set for its host: ``hosts.primary.congestion``
- ``timeout_s``: time without data after which the connection counts as lost and another one is opened
- ``settle_s``, ``drain_s``: the rest after the start and at the end

A trial is `done` if a message arrived before the end of its time, and a `timeout` otherwise. It is `invalid` if the
instrument did not keep up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import transfer_instrument, validity
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = "one connection over a long path for a fixed time: its throughput, by congestion control"
MAIN_METRIC = "throughput_kbytes_per_s"
SOCKETS = True
OPTIONS: dict[str, Scalar] = {
    "duration_s": 10.0,
    "quickack": False,
    "nagle": False,
    "congestion": "",
    "timeout_s": 60.0,
    "settle_s": 0.3,
    "probe_rate_per_s": 10_000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
GRACE_S = 30.0
"""How long `transfer` may take for its summary after its time is over."""
RETRIES = 1000
"""A lost connection is opened again at once, as often as the time allows. This cost is part of the result."""
RETRY_AFTER_S = 0.1


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    primary = HostRole(role="primary", under_test=True)
    return {"primary": primary, "client": HostRole()}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("client", "primary")]


def far(hosts: Iterable[str], options: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [("primary", "client")]


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["duration_s"])


def transfer_options(options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Options of `transfer`: one connection that is reused, and opened again if it is lost."""
    own = {name: options[name] for name in ("quickack", "nagle", "congestion", "timeout_s")}
    one: dict[str, Scalar] = {"policy": "reused", "retries": RETRIES, "retry_after_s": RETRY_AFTER_S}
    return {**transfer_instrument.OPTIONS, **one, **own}


def checks(spec: TrialSpec) -> list[str]:
    return []


def measure(context: TrialContext) -> Result:
    duration_s = float(context.option("duration_s"))
    options = transfer_options(context.spec.options)
    with context.phase("setup"):
        context.start_watch()
        context.start_ready("primary", limit_s=float(context.option("ready_limit_s")))
        time.sleep(float(context.option("settle_s")))
    words = [*transfer_instrument.policy(options), f"--duration-s={duration_s:g}", "--repeat"]
    with context.profiled(), context.phase("measure"):
        transfer = context.instruments.start_transfer("transfer", "client", "primary", words, options=options)
        summary = context.wait(transfer, limit_s=duration_s + GRACE_S)
        context.servers.count_threads()
    context.drain()
    return concluded(summary, duration_s=duration_s)


def concluded(summary: Mapping[str, Any], *, duration_s: float) -> Result:
    """Result of a trial from the ``summary`` of `transfer`. Everything that arrived counts, even a part of a zone."""
    if not summary["first_message_ns"]:
        failures = transfer_instrument.outcomes({"outcomes": summary["attempt_outcomes"]})
        if failures:
            return Result("server-failed", f"no zone began to come: {failures}")
        return Result("timeout", f"no message came whole in {duration_s:g} s")
    if reason := validity.why_transfer_did_not(summary):
        return Result("invalid", reason)
    return Result("done")
