"""All ephemeral ports are taken, most by connections in TIME_WAIT.

A connection that a host closes first keeps its port for 60 s in TIME_WAIT. One connection a zone from one address to
one server's port 53 therefore cannot go on faster than (ports in ip_local_port_range) / 60 s; beyond it connect() fails
with EADDRNOTAVAIL, and what failed waits for a retry timer while the CPU idles.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.rundir import TrialRecord
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

TITLE = "all ephemeral ports are taken by TIME_WAIT"
SOURCE = "S1: P. Spacek, 30,000 zones: address not available after 38 s (2024); Linux ip-sysctl, ip_local_port_range"
DEFAULT_RANGE = "32768 60999"
NEARLY_ALL = 0.95
FAILURE = "address not available"


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    if record.outcome not in ("done", "limit"):
        return None
    rows = trial.during_measure("secondary", "sockets", "tcp_time_wait")
    log = record.logs.get("secondary")
    failures = log.failures.get(FAILURE, 0) if log else 0
    if rows.is_empty() or log is None:
        return cannot_tell("Samples of TIME_WAIT or the secondary's log are missing.")
    ports = port_count(record)
    peak = int(trial.peak("secondary", "sockets", "tcp_time_wait") or 0)
    full = peak >= NEARLY_ALL * ports and not _reuses(record)
    if not failures and not full:
        return CLEAR
    wall_s = _wall_s(trial, ports)
    when = f" from {wall_s:.1f} s after exec" if wall_s is not None else ""
    logged = f"; the log says “{FAILURE}” {failures} times" if failures else ""
    return Conclusion(
        "found",
        summary=f"{peak:,} sockets in TIME_WAIT of {ports:,} ephemeral ports{when}{logged}.",
        evidence={
            "time_wait_peak_sockets": peak,
            "ephemeral_ports": ports,
            "ports_full_s": None if wall_s is None else round(wall_s, 2),
            "address_not_available_lines": failures,
            "log_line": log.examples.get(FAILURE, "") if log else "",
        },
        series=("secondary/sockets/tcp_time_wait",),
        metrics=(
            "transfer_time_s",
            "time_wait_peak",
            "connections_opened",
        ),
        remedy="Reuse connections, widen net.ipv4.ip_local_port_range, use several source addresses, or set "
        "net.ipv4.tcp_tw_reuse = 1 on the secondary's host.",
    )


def _reuses(record: TrialRecord) -> bool:
    """With tcp_tw_reuse = 1 a port in TIME_WAIT can be taken again: a full range is then no wall."""
    return _sysctl(record, "net.ipv4.tcp_tw_reuse", "2") == "1"


def _sysctl(record: TrialRecord, name: str, default: str) -> str:
    hosts = record.conditions.get("hosts", {})
    return str(hosts.get("secondary", {}).get("sysctls", {}).get(name) or default)


def port_count(record: TrialRecord) -> int:
    """How many ephemeral ports the secondary's host has, both ends counted."""
    low, high = map(int, _sysctl(record, "net.ipv4.ip_local_port_range", DEFAULT_RANGE).split())
    return high - low + 1


def _wall_s(trial: Trial, ports: int) -> float | None:
    """Seconds from exec of the secondary to the first sample with nearly all ports in TIME_WAIT."""
    rows = trial.during_measure("secondary", "sockets", "tcp_time_wait")
    full = rows.filter(rows["value"] >= NEARLY_ALL * ports)
    if full.is_empty():
        return None
    return (int(full["time_ns"][0]) - trial.record.servers["secondary"].exec_ns) / 1e9
