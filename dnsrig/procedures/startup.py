"""Start-up of a server that has its zones already: from exec to its first answer, and to the last zone answered.

``as = "primary"`` starts a primary on its zone files (as `zone-load` does). ``as = "secondary"`` restarts a secondary:
it transfers all zones, is stopped in order (SIGTERM), and is started again on whatever it stored by then. A server that
stored nothing has to fetch its zones anew, and that time counts. The primary runs all the while.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from dnsrig.procedures import HostRole, Result, zone_load
from dnsrig.procedures.context import TrialContext
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = (
    "start of a server that has its zones: from exec to the last zone answered, as primary or as restarted secondary"
)
MAIN_METRIC = "startup_time_s"
OPTIONS: dict[str, Scalar] = {
    "as": "primary",
    "page_cache": "warm",
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "stop_limit_s": 120,
    "settle_s": 2.0,
    "drain_s": 0.3,
}
CHOICES = {"as": ("primary", "secondary"), **zone_load.CHOICES}


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    if options["as"] == "primary":
        return {"server": HostRole(role="primary", under_test=True)}
    return {"primary": HostRole(role="primary"), "server": HostRole(role="secondary", under_test=True)}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("primary", "server")] if "primary" in hosts else []


def checks(spec: TrialSpec) -> list[str]:
    return ["page-cache"]


def measure(context: TrialContext) -> Result:
    def prepare() -> None:
        if context.option("as") == "primary":
            context.servers.prepare("server")
        else:
            _transfer_and_stop(context)

    return zone_load.time_start(context, "server", prepare)


def _transfer_and_stop(context: TrialContext) -> None:
    ready_limit_s = float(context.option("ready_limit_s"))
    for name in ("primary", "server"):
        context.start_ready(name, limit_s=ready_limit_s)
    # Zones that were just received are still being written down.
    time.sleep(float(context.option("settle_s")))
    context.servers.stop("server", limit_s=float(context.option("stop_limit_s")))
