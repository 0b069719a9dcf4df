"""Update: a primary gets the next version of its zones, and a secondary that has the previous one follows.

The time is from the command to the primary to load the new version, to the last zone that the secondary answers with
the new serial, as `probe` sees it. It includes the loading by the primary. Without NOTIFY, a secondary looks for a new
version only when the SOA's refresh timer expires, after an hour in these datasets. Such a trial ends at its limit,
which is the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from dnsrig.procedures import HostRole, Result, transfer
from dnsrig.procedures.context import TrialContext
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = "time from a new version on the primary until the secondary answers for the last zone with it"
MAIN_METRIC = "update_time_s"
NEXT_VERSION = True
"""The trial needs the dataset in two versions."""
OPTIONS: dict[str, Scalar] = {
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "settle_s": 2.0,
    "drain_s": 0.3,
}
links = transfer.links


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    return transfer.hosts({"primaries": 1})


def checks(spec: TrialSpec) -> list[str]:
    return ["ixfr-size", "transfer-port"]


def measure(context: TrialContext) -> Result:
    ready_limit_s = float(context.option("ready_limit_s"))
    with context.phase("setup"):
        context.start_watch()
        context.start_ready("primary", limit_s=ready_limit_s)
        context.start_ready("secondary", limit_s=ready_limit_s)
    with context.phase("warmup"):
        # Servers that have just started still write zones down and finish connections.
        context.changes.lay_out("primary")
        time.sleep(float(context.option("settle_s")))
        out = context.directory / "zones.arrow"
        probe = context.instruments.start_probe(
            "probe", "secondary", limit_s=context.spec.limit_s, out=out, next_version=True
        )
    return context.time_zones(probe, lambda: context.changes.load("primary"))
