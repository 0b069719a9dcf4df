"""A host kept fewer sockets in TIME_WAIT than its kernel would by default, and connections were closed without
TIME_WAIT.

With a low net.ipv4.tcp_max_tw_buckets, ports become free at once and many zones arrive fast. The kernel's documentation
forbids this: only TIME_WAIT keeps late segments of an old connection out of a new one between the same ports. A result
that was reached this way is not possible in production.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
OUTCOMES = COMPARED
TITLE = "the result was reached with a lowered tcp_max_tw_buckets"
SOURCE = (
    "RFC 9293, section 3.6.1 (MUST-13); Linux ip-sysctl, tcp_max_tw_buckets; S1: 9 ±8 % of the time with 1000 (2024)"
)
SYSCTL = "net.ipv4.tcp_max_tw_buckets"


def after(trial: Trial) -> Conclusion | None:
    buckets, default = _buckets(trial), _default(trial)
    if not buckets or default is None:
        return cannot_tell(f"{SYSCTL} of the hosts, or the kernel's default for it, is not known.")
    lowered = {host: count for host, count in buckets.items() if count < default}
    skipped = {host: trial.growth(host, "tcp", "time_wait_overflow") for host in lowered}
    if None in skipped.values():
        return cannot_tell(
            "No samples of TCPTimeWaitOverflow, so it is not known whether the lowered limit had an effect."
        )
    affected = {host: int(count) for host, count in skipped.items() if count}
    if not affected:
        return CLEAR
    told = " and ".join(f"{count:,} on the {host} (limit {buckets[host]:,})" for host, count in affected.items())
    return Conclusion(
        "found",
        summary=f"Connections were closed without TIME_WAIT: {told}; this kernel's default limit is {default:,}.",
        evidence={"kernel_limit_sockets": default}
        | {f"{host}_limit_sockets": buckets[host] for host in affected}
        | {f"{host}_without_time_wait_sockets": count for host, count in affected.items()},
        series=tuple(f"{host}/tcp/time_wait_overflow" for host in affected),
        metrics=(trial.record.spec.main_metric, "time_wait_peak", "time_wait_overflows"),
        remedy=f"Do not change {SYSCTL}. Avoid running out of ports instead: reuse connections, widen the range, use more source addresses.",
    )


def _buckets(trial: Trial) -> dict[str, int]:
    """The effective limit on the hosts of servers."""
    found = {host: _read_back(trial, host) for host in trial.hosts_as("primary", "secondary", "resolver", "world")}
    return {host: count for host, count in found.items() if count is not None}


def _default(trial: Trial) -> int | None:
    """The limit on hosts with the kernel's default, which depends on the machine's memory."""
    untouched = [name for name, host in trial.record.spec.hosts.items() if SYSCTL not in host.sysctls]
    return max((count for name in untouched if (count := _read_back(trial, name)) is not None), default=None)


def _read_back(trial: Trial, host: str) -> int | None:
    text = str(trial.record.read_back.get("hosts", {}).get(host, {}).get("sysctls", {}).get(SYSCTL, ""))
    return int(text) if text.isdigit() else None
