"""A replay did not keep the times at which the clients sent their queries.

An instrument that is short of time falls behind its stream, and then sends at once all queries that have become due
meanwhile. The server sees pauses and bursts that no client made: queues fill, caches get a name twice in a millisecond,
and limits for each client are exceeded. The mean rate remains right.

A replay that falls behind ends later than its stream. A replay that sends in bursts ends in time, but a part of its
queries left late, together with the queries that were due after them.
"""

from __future__ import annotations

from dnsrig.rundir import OBSERVER
from dnsrig.runs import lag
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 45
GROUP = "the load generator"
OUTCOMES = JUDGED
TITLE = "the replay sent queries late"
SOURCE = (
    "DNS Shotgun paces only each 128th packet, so bursts of 128 are up to 14 ms early at 9,000 queries a second; "
    "LDplayer (IMC 2018) keeps quartiles within 8 ms"
)
LATE_NS = lag.ALWAYS_NS
"""Largest lag at the 99th percentile. On an idle machine it is 0.2 ms or less."""
SLIP_SHARE = 0.01
"""Share of the stream's duration by which sending may take longer."""
SLIP_S = 0.02
"""Largest delay of the end that may be the last query's alone."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if load.model != "stream":
        return None
    if not load.lag_ns:
        return cannot_tell("The summary of the replay has no send lag.")
    slip_s, late_ns, longest_ns = slipped_s(load), load.lag_ns.get("p99") or 0, load.lag_ns.get("max") or 0
    slips, bursts = slip_s > max(SLIP_S, SLIP_SHARE * load.span_s), late_ns > LATE_NS
    if not slips and not bursts:
        return CLEAR
    together = min(load.due, round(longest_ns / 1e9 * load.due / load.span_s)) if load.span_s > 0 else load.due
    told = [f"sending took {digits(slip_s)} s longer than the {digits(load.span_s)} s of the stream"] if slips else []
    if bursts:
        told.append(
            f"1 % of the queries were sent {digits(late_ns / 1e6)} ms or more after they were due, and up to about {together:,} at once"
        )
    return Conclusion(
        "found",
        summary=f"The replay sent queries late: {'; '.join(told)}.",
        evidence={
            "slip_s": round(slip_s, 3),
            "span_s": round(load.span_s, 3),
            "lag_p50_us": round((load.lag_ns.get("p50") or 0) / 1e3, 1),
            "lag_p99_us": round(late_ns / 1e3, 1),
            "lag_max_ms": round(longest_ns / 1e6, 3),
            "burst_queries": together,
            "unsent": load.unsent,
        },
        metrics=(trial.record.spec.main_metric, "send_lag_p99_us", "asked_qps"),
        remedy="Play the stream more slowly (`--set options.speed=...`), give the clients' host more CPUs "
        f"(`--set 'hosts.{_slowest(trial)}.cpus=[...]'`) with as many `options.threads`, or keep only a part of the clients "
        "(`--set stream.keep_share=...`).",
    )


def _slowest(trial: Trial) -> str:
    """The host that sent its part of the stream the latest; runs of earlier versions do not name the sending hosts."""
    loads = trial.loads
    slowest = max(loads, key=lambda host: loads[host].lag_ns.get("p99") or 0)
    return "clients" if slowest == OBSERVER else slowest


def slipped_s(load: LoadResult) -> float:
    """Time from the end of the stream until the last query was sent."""
    return load.sending_ns / 1e9 - load.span_s
