"""All ephemeral ports are taken, most by connections in TIME_WAIT.

A connection that a host closes first keeps its port for 60 s in TIME_WAIT. With one connection for each zone, from one
address to port 53 of one server, the rate cannot stay above (ports in ip_local_port_range) / 60 s. Above it connect()
fails with EADDRNOTAVAIL, and the failed transfers wait for a retry timer while the CPU idles.

A full range alone does no harm: 995 zones need no more than 1,000 ports. Ports are exhausted if the log reports it, or
if no more connections were opened while more zones were missing than ports were free.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.rundir import LogDrilldown, TrialRecord
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
OUTCOMES = COMPARED
TITLE = "all ephemeral ports are taken by TIME_WAIT"
SOURCE = "S1: P. Spacek, 30,000 zones: address not available after 38 s (2024); Linux ip-sysctl, ip_local_port_range"
WEIGHT = "explains"
DEFAULT_RANGE = "32768 60999"
FAILURE = "no free port"
"""The kind of failure, whatever words the server uses in its log."""
NEARLY_ALL = 0.95
"""Share of the ports in TIME_WAIT above which the range counts as full: the others are in use."""
PLAUSIBLE = 0.5
"""Share of one address's ports in TIME_WAIT below which the failures in the log have another cause."""
STALL_S = 5.0
"""Time after the wall in which new connections are counted: retry timers are longer, and TIME_WAIT ends after 60 s."""
STALL_SHARE = 0.25
"""Share of the earlier rate below which no more connections could be opened."""


@dataclass(frozen=True)
class Wall:
    """The moment at which the range was full, and the connections after it."""

    time_s: float
    """Time from exec to the first sample in which the number of ports in TIME_WAIT was near its peak."""
    zones_then: int
    opens_per_s_before: float | None
    opens_per_s_after: float | None
    """Rate within STALL_S; None if the trial ended sooner, or samples are missing."""
    missing: int
    """Zones that were not there STALL_S after the wall."""


def after(trial: Trial) -> Conclusion | None:
    record, log = trial.record, trial.log
    if trial.measure is None or not trial.is_cold_start:
        return None
    peak = trial.peak(trial.subject, "sockets", "tcp_time_wait")
    if peak is None or log is None:
        return cannot_tell(f"Samples of TIME_WAIT or the log of the {trial.subject} are missing.")
    failures, ports = log.failures.get(FAILURE, 0), port_count(record)
    # Towards another primary a port can be used again, unless the server binds its socket first: only the log shows it.
    full, several = peak >= NEARLY_ALL * ports, len(record.spec.primaries) > 1
    wall = _wall(trial, ports, peak) if full and not several else None
    if failures and peak < PLAUSIBLE * ports / _addresses(record):
        return cannot_tell(
            f"The log reports {FAILURE} {failures:,} times, but no sample has more than {peak:,.0f} of {ports:,} ports in "
            "TIME_WAIT: does the source address exist?"
        )
    if not failures and not (wall and _stalled(record, wall, ports - peak)):
        if full and several and record.outcome != "done":
            return cannot_tell(
                f"{peak:,.0f} of {ports:,} ports were in TIME_WAIT and not all zones arrived, but the log reports no failure, and "
                f"towards another of the {len(record.spec.primaries)} primaries a port may be used again."
            )
        return CLEAR
    return _found(trial, log, int(peak), ports, wall)


def port_count(record: TrialRecord) -> int:
    """Number of ephemeral ports of the host under test: including both ends of the range, on all its addresses."""
    low, high = map(int, _sysctl(record, "net.ipv4.ip_local_port_range", DEFAULT_RANGE).split())
    return (high - low + 1) * _addresses(record)


def _addresses(record: TrialRecord) -> int:
    return 1 + len(record.spec.hosts[record.spec.subject].source_addresses)


def _sysctl(record: TrialRecord, name: str, default: str) -> str:
    hosts = record.read_back.get("hosts", {})
    return str(hosts.get(record.spec.subject, {}).get("sysctls", {}).get(name) or default)


def _stalled(record: TrialRecord, wall: Wall, free: float) -> bool:
    """Whether the full range prevented new connections, although the log does not report it."""
    if _sysctl(record, "net.ipv4.tcp_tw_reuse", "2") == "1":
        return False  # a port in TIME_WAIT can be used again
    if wall.opens_per_s_before is None or wall.opens_per_s_after is None or wall.missing <= free:
        return False
    return wall.opens_per_s_after <= STALL_SHARE * wall.opens_per_s_before


def _wall(trial: Trial, ports: int, peak: float) -> Wall | None:
    measure, server = trial.measure, trial.server
    if measure is None or server is None:
        return None
    rows = trial.during_measure(trial.subject, "sockets", "tcp_time_wait")
    wall_ns = int(rows.filter(pl.col("value") >= max(NEARLY_ALL * ports, 0.99 * peak))["time_ns"][0])
    seen = trial.zones["seen_ns"].drop_nulls()
    last_ns = seen.max() if trial.record.outcome == "done" else None
    end_ns = last_ns if isinstance(last_ns, int) else measure.end.monotonic_ns
    until_ns = wall_ns + int(STALL_S * 1e9)
    return Wall(
        time_s=(wall_ns - server.exec_ns) / 1e9,
        zones_then=int((seen <= wall_ns).sum()),
        opens_per_s_before=_opens_per_s(trial, server.exec_ns, wall_ns),
        opens_per_s_after=_opens_per_s(trial, wall_ns, until_ns) if until_ns <= end_ns else None,
        missing=trial.record.spec.dataset.zones - int((seen <= until_ns).sum()),
    )


def _opens_per_s(trial: Trial, begin_ns: int, finish_ns: int) -> float | None:
    """Connections opened a second, from the samples between two moments."""
    rows = trial.series(trial.subject, "tcp", "active_opens")
    rows = rows.filter(pl.col("time_ns").is_between(begin_ns, finish_ns))
    if rows.height < 2:
        return None
    opened, span_ns = (int(rows[name][-1]) - int(rows[name][0]) for name in ("value", "time_ns"))
    return opened / span_ns * 1e9


def _found(trial: Trial, log: LogDrilldown, peak: int, ports: int, wall: Wall | None) -> Conclusion:
    spec, failures = trial.record.spec, log.failures.get(FAILURE, 0)
    first_s = trial.since_exec_s(log.first_failure_realtime_ns.get(FAILURE))
    resolution_s = log.resolution_ns / 1e9
    each = f" (to each of {len(spec.primaries)} primaries)" if len(spec.primaries) > 1 else ""
    met = f", {wall.time_s:.1f} s after exec with {wall.zones_then:,} zones done" if wall else ""
    logged = f"; the log reports {FAILURE} {failures:,} times" if failures else ""
    if failures and first_s is not None:
        logged += f", first {first_s:.2f} s after exec (±{resolution_s:g} s)"
    if not failures and wall:
        logged = f"; new connections a second fell from {wall.opens_per_s_before:.0f} to {wall.opens_per_s_after:.0f}"
    return Conclusion(
        "found",
        summary=f"{peak:,} sockets in TIME_WAIT of {ports:,} ephemeral ports{each}{met}{logged}.",
        evidence={
            "time_wait_peak_sockets": peak,
            "ephemeral_ports": ports,
            "source_addresses": _addresses(trial.record),
            "primaries": len(spec.primaries),
            "ports_full_s": None if wall is None else round(wall.time_s, 2),
            "zones_then": None if wall is None else wall.zones_then,
            "first_failure_s": None if first_s is None else round(first_s, 3),
            "log_resolution_s": resolution_s,
            "opens_per_s_before": None if wall is None else _rounded(wall.opens_per_s_before),
            "opens_per_s_after": None if wall is None else _rounded(wall.opens_per_s_after),
            "no_free_port_lines": failures,
            "log_line": log.examples.get(FAILURE, ""),
        },
        series=(f"{trial.subject}/sockets/tcp_time_wait", f"{trial.subject}/tcp/active_opens"),
        metrics=(spec.main_metric, "time_wait_peak", "connections_opened"),
        remedy="Reuse connections, widen net.ipv4.ip_local_port_range, use several source addresses, or set "
        f"net.ipv4.tcp_tw_reuse = 1 on the host {trial.subject}.",
    )


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)
