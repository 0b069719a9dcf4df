"""Datagrams were dropped because a socket's receive buffer was full.

The kernel drops what finds no room in the buffer and only counts it. For a secondary that asks for the SOA of a thousand zones at
once, each dropped answer looks like a dead primary: PowerDNS then leaves that zone alone for a minute.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

TITLE = "datagrams dropped at a full receive buffer"
SOURCE = "RFC 4113, udpInErrors; Linux UdpRcvbufErrors; measured with PowerDNS 5.1.5, 1,000 zones"


def after(trial: Trial) -> Conclusion | None:
    if trial.record.outcome not in ("done", "limit"):
        return None
    drops = {host: trial.growth(host, "udp", "rcvbuf_errors") for host in trial.hosts_as("primary", "secondary")}
    if None in drops.values():
        return cannot_tell("No samples of UDP errors.")
    lossy = {host: int(count) for host, count in drops.items() if count}
    if not lossy:
        return CLEAR
    told = " and ".join(f"{count:,} on the {host}" for host, count in lossy.items())
    return Conclusion(
        "found",
        summary=f"Receive buffers of UDP sockets were full: {told} dropped.",
        evidence={f"dropped_{host}": int(count or 0) for host, count in drops.items()},
        series=tuple(f"{host}/udp/rcvbuf_errors" for host in lossy),
        metrics=(trial.record.spec.main_metric, "udp_buffer_errors"),
        remedy="Raise the server's own receive buffer if it has a setting, or net.core.rmem_default of the machine; or let "
        "the secondary ask for fewer SOA records at once.",
    )
