"""The duration of a run: an estimate, and an upper limit."""

from __future__ import annotations

from dataclasses import dataclass

from dnsrig.errors import DnsrigError
from dnsrig.experiment.executors import executor
from dnsrig.procedures import procedure
from dnsrig.rundir import TrialSpec
from dnsrig.servers import driver_of

RECORDS_PER_S = 100_000
ZONES_PER_S = 1_000
"""Cautious rates of a server without other limits, as measured on a machine with 2 cores."""
WORLD_S = 7.0
"""Time for a simulated Internet to sign, and for a twin of the resolver to show its DNSSEC level."""
PATH_S = 4.0
"""Time to start, test and end emulated links."""


@dataclass(frozen=True)
class Estimate:
    expected_s: float
    at_most_s: float


def of_trial(spec: TrialSpec) -> Estimate:
    """Duration of a trial, from the size of the dataset, the servers' own limits, and the procedure's time of
    measuring."""
    zones, records = spec.dataset.zones, spec.dataset.records
    work_s = zones / ZONES_PER_S + records / RECORDS_PER_S
    for limit in _limits(spec):
        work_s = max(work_s, zones / limit)
    measured_s = _measured_s(spec)
    overhead_s = executor(spec.kernel).OVERHEAD_S
    overhead_s += WORLD_S if spec.world else 0.0
    overhead_s += PATH_S if any(link.emulated for link in spec.links) else 0.0
    at_most_s = overhead_s + 2 * work_s + measured_s + spec.limit_s
    return Estimate(overhead_s + min(2 * work_s, spec.limit_s) + measured_s, at_most_s)


def _measured_s(spec: TrialSpec) -> float:
    """Time of measuring, from the options, which may come from a manifest that somebody else wrote."""
    expected_s = getattr(procedure(spec.procedure), "expected_s", None)
    try:
        return expected_s(spec.options) if expected_s else 0.0
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise DnsrigError(f"the options of {spec.variant.id} do not fit {spec.procedure}: {error}") from error


def of_run(specs: list[TrialSpec]) -> Estimate:
    each = [of_trial(spec) for spec in specs]
    return Estimate(sum(e.expected_s for e in each), sum(e.at_most_s for e in each))


def _limits(spec: TrialSpec) -> list[float]:
    found = []
    for host in spec.hosts.values():
        if host.server is not None and host.role is not None:
            limits = driver_of(host.server).limits(host.role, host.settings)
            found += [limit.zones_per_s for limit in limits if limit.zones_per_s]
    return found
