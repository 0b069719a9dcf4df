"""Datagrams were dropped because a socket's receive buffer was full, on the server's or on the instrument's side.

The kernel drops datagrams that find no room in the buffer, and only counts them. To a secondary that requests the SOA
of a thousand zones at once, each dropped answer looks like a dead primary: PowerDNS then does not try that zone again
for a minute. If a server had no room for a query, the client sees only a timeout. And if the instrument had no room for
an answer, the answer counts as missing, although the server gave it.

QUIC sends again what was dropped, so no query is lost. But its congestion control takes each drop for a path that is
too narrow, and sends less. All connections of a server's thread share one socket, and so one buffer.
"""

from __future__ import annotations

from dnsrig.runs import during
from dnsrig.runs.stalls import stalls_of
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "datagrams dropped at a full receive buffer"
SOURCE = "RFC 4113, udpInErrors; Linux UdpRcvbufErrors; measured with PowerDNS 5.1.5, 1,000 zones"
WEIGHT = "explains"

LOADING = ("load_time_s", "startup_time_s")
"""Main metrics of trials that ask a server while it loads."""
SERVER_REMEDY = (
    "Raise the server's own receive buffer if it has a setting, or net.core.rmem_default of the machine; or let "
    "the secondary request fewer SOA records at once."
)
LOADED_SERVER_REMEDY = (
    "Raise the server's own receive buffer if it has a setting, or net.core.rmem_default of the machine; or lower the rate "
    "(`--set options.rate_qps=...`)."
)
INSTRUMENT_REMEDY = (
    "The instrument lost answers that the server gave: raise net.core.rmem_max of {machine}, give {host} more CPUs "
    "(`--set 'hosts.{name}.cpus=[...]'`), or lower the rate (`--set options.rate_qps=...`)."
)


def after(trial: Trial) -> Conclusion | None:
    instruments = [host for host in trial.record.spec.instrument_hosts if host in trial.record.spec.hosts]
    watched = [*trial.hosts_as("primary", "secondary", "resolver"), *instruments]
    drops = {host: trial.udp_growth(host, "rcvbuf_errors") for host in watched}
    if None in drops.values():
        return cannot_tell("No samples of UDP errors.")
    # A ramp goes on until the server loses queries: that is its result, not a trap. And a server that still loads its
    # zones need not read the thousand queries a second of `probe`.
    is_expected = trial.load.model == "ramp" or trial.record.spec.main_metric in LOADING
    expected = {trial.subject} if is_expected else set()
    lossy = {host: int(count) for host, count in drops.items() if count and host not in expected}
    if not lossy:
        return CLEAR
    told = " and ".join(f"{count:,} on {_named(host)}" for host, count in lossy.items())
    ours = " and ".join(_named(host) for host in lossy if host in instruments)
    again = " QUIC sent it again, and then sent less." if trial.load.transport == "doq" else ""
    fault = f" The drops on {ours} are the instrument's fault: the server gave these answers." if ours else ""
    stalled = _in_stalls(trial, lossy)
    return Conclusion(
        "found",
        summary=f"Receive buffers of UDP sockets were full: {told} dropped.{again}{fault}{_stalled_in_words(trial, stalled)}",
        evidence={f"dropped_{host}": int(count or 0) for host, count in drops.items()}
        | ({} if stalled is None else {"dropped_in_stalls_percent": round(100 * stalled, 1)}),
        series=tuple(
            f"{host}/{'udp' if trial.record.spec.family == 'ipv4' else 'udp6'}/rcvbuf_errors" for host in lossy
        ),
        metrics=_concerned(trial),
        remedy=" ".join(_remedies(trial, lossy)),
    )


def _in_stalls(trial: Trial, lossy: dict[str, int]) -> float | None:
    """Share of the server's drops while the whole server stood still; None if it never did, or if that is not known."""
    found = stalls_of(trial) if trial.load.ran and trial.subject in lossy else None
    if found is None or not found.found:
        return None
    # A stall at the end is known only until the last query was sent, and a counter only for each interval of `watch`.
    each = [during.growth_in(trial, (trial.subject, s, "rcvbuf_errors"), found.stretches) for s in ("udp", "udp6")]
    return None if each[0] is None else min(1.0, sum(grown or 0 for grown in each) / lossy[trial.subject])


def _stalled_in_words(trial: Trial, share: float | None) -> str:
    if share is None:
        return ""
    return f" {share:.0%} of the drops on the {trial.subject} happened while the whole server stood still (`stalled-server`)."


def _concerned(trial: Trial) -> tuple[str, ...]:
    more = ("unanswered_share_percent", "answered_qps") if trial.load.ran else ()
    return (trial.record.spec.main_metric, "udp_buffer_errors", *more)


def _named(host: str) -> str:
    """
    >>> _named("secondary"), _named("generator-2")
    ('the secondary', 'generator-2')
    """
    return host if host[-1].isdigit() else f"the {host}"


def _remedies(trial: Trial, lossy: dict[str, int]) -> list[str]:
    spec = trial.record.spec
    ours = [host for host in lossy if host in spec.instrument_hosts]
    found = []
    if ours:
        machine = spec.hosts[ours[0]].machine or "the machine"
        found.append(INSTRUMENT_REMEDY.format(machine=machine, host=_named(ours[0]), name=ours[0]))
    if set(lossy) - set(ours):
        found.append(LOADED_SERVER_REMEDY if trial.load.ran else SERVER_REMEDY)
    return found
