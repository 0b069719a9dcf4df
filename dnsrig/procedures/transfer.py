"""Zone transfer: a cold secondary fetches all zones of a primary.

The time is from exec of the secondary, which has nothing on disk, to the last zone answered with the expected serial,
as `probe` sees it from a third host: it polls only zones not yet seen, at a bounded rate, and states its resolution.

The secondary may be the instrument `transfer` itself (`transfer@engine`), which stores nothing and answers nothing: the
floor that protocol and primary set. Its time ends with the last message of the last zone, as it says itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.instrument import Instrument
from dnsrig.procedures.parts import transfer_instrument
from dnsrig.rundir import Scalar, TrialSpec
from dnsrig.servers import driver_of

DESCRIPTION = "cold start of a secondary: from exec to the last zone answered with the expected serial"
MAIN_METRIC = "transfer_time_s"
OPTIONS: dict[str, Scalar] = {
    "primaries": 1,
    "probe_rate_per_s": 1000,
    "primary_ready_limit_s": 900,
    "drain_s": 0.3,
}
WITHOUT_ANSWERS = True
RANGES = {"primaries": (1, 16)}
SETTLE_S = 0.3
"""Between the primary being ready and the start of the secondary: several samples of a machine at rest."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    """With several primaries, zones are divided among them: zone n comes from primary n, round and round."""
    count = int(options["primaries"])
    more = {f"primary{number}": HostRole(role="primary", inherits="primary") for number in range(2, count + 1)}
    return {
        "primary": HostRole(role="primary"),
        **more,
        "secondary": HostRole(role="secondary", under_test=True),
    }


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, "secondary") for name in hosts if name.startswith("primary")]


def checks(spec: TrialSpec) -> list[str]:
    found = ["zones-came", "transfer-port", *(["primaries-used"] if len(spec.primaries) > 1 else [])]
    subject = spec.hosts[spec.subject]
    by_us = subject.server is not None and not driver_of(subject.server).answers
    found += ["connections-tls"] if by_us else ["provisioning"]
    return [*found, *(["source-addresses"] if subject.source_addresses else [])]


def measure(context: TrialContext) -> Result:
    with context.phase("setup"):
        context.start_watch()
        for primary in context.spec.primaries:
            context.start_ready(primary, limit_s=float(context.option("primary_ready_limit_s")))
        context.servers.prepare("secondary")
        time.sleep(SETTLE_S)
        probe = start_probe(context)
    if probe is None:
        return floor(context)
    return context.time_zones(probe, lambda: context.servers.start("secondary"))


def start_probe(context: TrialContext) -> Instrument | None:
    """Looks for the zones on the secondary; None where that answers nothing."""
    if not driver_of(context.servers.placements["secondary"].source).answers:
        return None
    return context.instruments.start_probe(
        "probe", "secondary", limit_s=context.spec.limit_s, out=context.directory / "zones.arrow"
    )


def floor(context: TrialContext) -> Result:
    """The phases `measure` and `drain` where the instrument takes the zones itself."""
    limit_s = context.spec.limit_s
    with context.profiled(), context.phase("measure"):
        context.servers.start("secondary")
        summary = context.finish_server("secondary", limit_s=limit_s)
    context.drain()
    return transfer_instrument.concluded(summary, zones=context.spec.dataset.zones, limit_s=limit_s)
