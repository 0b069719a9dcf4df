"""Propagation: changes on a primary, and how long each takes to every one of its secondaries.

A change is a dynamic update (RFC 2136) with a serial of its own. Its time is from sending the update to the first
answer of a secondary with that serial or a later one, as `propagation` sees it: it asks each secondary for the SOA
while a change is missing there, at a bounded rate, and states for each change how finely the moment is known.

``mode = "single"`` makes one change at a time: the next one ``pause_ms`` after every secondary has it, and up to
``pause_spread_ms`` later, evenly spread, or changes would fall in step with the timers of servers. ``mode = "stream"``
makes them at ``rate_per_s``, whatever the servers do; the primary `zones@engine` then makes them by itself, and nothing
waits for an update. Without NOTIFY (``transfer.notify``) only the SOA's refresh timer makes a secondary look;
``dataset.refresh_s`` sets it, and some servers have a lowest one of their own.

All secondaries have the server and the settings of the first, which is the one under test: on a machine of few CPUs it
has one to itself, while the others share theirs with the primary and the instrument.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext, placing
from dnsrig.procedures.parts import notifies
from dnsrig.rundir import Scalar, TrialSpec
from dnsrig.servers.placement import Changes

DESCRIPTION = "time from a change on the primary to the first answer with it on each secondary"
MAIN_METRIC = "propagation_p50_ms"
OPTIONS: dict[str, Scalar] = {
    "secondaries": 1,
    "mode": "single",
    "changes": 20,
    "pause_ms": 200,
    "pause_spread_ms": 1000,
    "rate_per_s": 10.0,
    "change_limit_s": 20.0,
    "poll_rate_per_s": 2000,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 120,
    "settle_s": 1.0,
    "drain_s": 0.3,
}
CHOICES = {"mode": ("single", "stream")}
RANGES = {"secondaries": (1, 16)}
DELAY_S = 2.0
"""Delay before a primary changes zones by itself, so that the instrument knows its serials by then."""
GRACE_S = 30.0
"""How long `propagation` may take for its summary after the last change was given up."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    count = int(options["secondaries"])
    more = {f"secondary{number}": HostRole(role="secondary", inherits="secondary") for number in range(2, count + 1)}
    return {
        "primary": HostRole(role="primary"),
        "secondary": HostRole(role="secondary", under_test=True),
        **more,
    }


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("primary", name) for name in hosts if name.startswith("secondary")]


def checks(spec: TrialSpec) -> list[str]:
    return [
        "updates-accepted",
        "transfer-port",
        "told-by-notify",
        *([] if spec.transfer.notify else ["asked-by-timer"]),
    ]


def validate(spec: TrialSpec) -> None:
    """Refuse changes that nobody could make."""
    if placing.changes_itself(spec):
        if spec.options["mode"] != "stream":
            raise UsageError(
                "this primary changes its zones itself, at a fixed rate", hint='set options.mode = "stream"'
            )
    elif not spec.transfer.updates:
        raise UsageError(
            "dynamic updates of the primary's zones are not allowed",
            hint="set transfer.updates = true in the experiment",
        )


def measure(context: TrialContext) -> Result:
    itself = placing.changes_itself(context.spec)
    if itself:
        context.servers.own_changes["primary"] = Changes("zones", float(context.option("rate_per_s")), delay_s=DELAY_S)
    ready_limit_s = float(context.option("ready_limit_s"))
    with context.phase("setup"):
        context.start_watch()
        for name in (name for name, host in context.spec.hosts.items() if host.role is not None):
            context.start_ready(name, limit_s=ready_limit_s)
    with context.phase("warmup"):
        # Servers that have just started still write zones down and finish connections.
        time.sleep(float(context.option("settle_s")))
    limit_s = context.spec.limit_s + float(context.option("change_limit_s")) + GRACE_S
    with notifies.watched(context), context.profiled(), context.phase("measure"):
        begun = [f"--made-from-ns={context.changes.begin('primary')}"] if itself else []
        probe = context.instruments.start_propagation([*_arguments(context), *begun])
        seen = context.wait(probe, limit_s=limit_s)
        if itself:
            context.changes.end("primary")
        context.servers.count_threads()
    context.drain()
    return concluded(seen)


def _arguments(context: TrialContext) -> list[str]:
    """Arguments of `propagation` for the pace of changes."""
    pace = ("pause_ms", "pause_spread_ms") if context.option("mode") == "single" else ()
    found = [f"--{name.replace('_', '-')}={context.option(name)}" for name in ("changes", "poll_rate_per_s", *pace)]
    found += [] if pace else [f"--rate={context.option('rate_per_s')}"]
    return [*found, f"--limit-s={context.option('change_limit_s')}", f"--stop-after-s={context.spec.limit_s}"]


def concluded(seen: Mapping[str, Any]) -> Result:
    """Result of a trial: `invalid` if the primary did not make a change, `timeout` if a change did not arrive."""
    if refused := seen["refused"] + seen["accept_timeouts"]:
        codes = ", ".join(f"{count} {code}" for code, count in seen["rcodes"].items() if code != "NOERROR")
        return Result(
            "invalid", f"the primary did not make {refused} of {seen['changes']} changes ({codes or 'no answer'})"
        )
    if seen["outcome"] == "done":
        return Result("done")
    if seen["unseen"]:
        wanted, limit_s = seen["seen"] + seen["unseen"], seen["limit_ns"] / 1e9
        return Result("timeout", f"{seen['unseen']:,} of {wanted:,} arrivals were not seen within {limit_s:g} s")
    return Result("timeout", f"only {seen['changes']:,} of {seen['wanted']:,} changes were made in the trial's time")
