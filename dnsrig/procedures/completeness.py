"""Completeness: does a secondary answer with every record that its primary was given?

A cold secondary transfers all zones. Then `probe records` asks the primary and the secondary for every RRset, and
compares each answer with the zone files. With ``update``, the primary loads the next version of the zones, of which the
secondary hears by NOTIFY, and is asked again. With `transfer.ixfr` the secondary asks for the changes only (RFC 1995).

A zone that does not load or does not arrive is a result, not an error: the trial waits for it until its limit, and
counts its RRsets as lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig import datasets
from dnsrig.procedures import HostRole, Result, transfer
from dnsrig.procedures.context import PROBE_GRACE_S, TrialContext
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = "RRsets that a primary and its secondary answer otherwise than the zone files have them"
MAIN_METRIC = "rrsets_lost"
NEXT_VERSION = True
OPTIONS: dict[str, Scalar] = {
    "update": False,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 10,
    "asking_limit_s": 600,
    "drain_s": 0.3,
}
links = transfer.links


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    return transfer.hosts({"primaries": 1})


def checks(spec: TrialSpec) -> list[str]:
    return ["transfer-port", "provisioning"]


def next_version(values: Mapping[str, Scalar], options: Mapping[str, Scalar]) -> dict[str, Scalar] | None:
    return datasets.next_version(values) if options["update"] else None


def measure(context: TrialContext) -> Result:
    with context.phase("setup"):
        context.start_watch()
        context.servers.prepare("primary")
        context.servers.start("primary")
        _await_zones(context, "probe-primary", "primary", limit_s=float(context.option("ready_limit_s")))
        context.servers.prepare("secondary")
    with context.profiled(), context.phase("measure"):
        context.servers.start("secondary")
        _await_zones(context, "probe", "secondary", limit_s=context.spec.limit_s)
        for host in ("primary", "secondary"):
            _compare(context, f"records-{host}", host)
        if context.option("update"):
            context.changes.lay_out("primary")
            context.changes.load("primary")
            _await_zones(context, "probe-update", "secondary", limit_s=context.spec.limit_s, next_version=True)
            for host in ("primary", "secondary"):
                _compare(context, f"records-{host}-updated", host, next_version=True)
    context.drain()
    return Result("done")


def _await_zones(context: TrialContext, name: str, host: str, *, limit_s: float, next_version: bool = False) -> None:
    """Wait until the server of ``host`` answers all zones, or until the time is over."""
    out = context.directory / "zones.arrow" if name == "probe" else None
    probe = context.instruments.start_probe(name, host, limit_s=limit_s, out=out, next_version=next_version)
    context.wait(probe, limit_s=limit_s + PROBE_GRACE_S)


def _compare(context: TrialContext, name: str, host: str, *, next_version: bool = False) -> None:
    asking_limit_s = float(context.option("asking_limit_s"))
    asking = context.instruments.start_records(name, host, limit_s=asking_limit_s, next_version=next_version)
    context.wait(asking, limit_s=asking_limit_s + PROBE_GRACE_S)
