"""The server permitted fewer streams than there were queries to send, so queries waited at the client.

Over HTTP/2 and QUIC each query has a stream, and the server limits how many may be open on a connection
(SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS). If all are open, the next query waits for an answer to another one. The
latency then has a part that a client with another connection would not have, and the rate of a connection is at most
its streams divided by the time of an answer.

The trap counts the queries that waited, at a fixed rate or in a closed loop. A search for the highest rate goes on
until the server is too slow, and then queries wait for streams whatever their number is.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 41
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "queries waited for a stream"
SOURCE = "RFC 9113, 5.1.2: SETTINGS_MAX_CONCURRENT_STREAMS; RFC 9000, 4.6: MAX_STREAMS"
WEIGHT = "explains"
STREAMED = ("doh", "doq")
SMALLEST_SHARE = 0.01
"""Smallest share of queries that waited. With less, only percentiles above the 99th can differ."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if load.transport not in STREAMED:
        return None
    if load.model == "ramp" and load.waited_for_stream:
        return cannot_tell("A search goes on until the server is too slow, and then queries wait for streams as well.")
    if load.waited_for_stream < SMALLEST_SHARE * max(1, load.due):
        return CLEAR
    share = load.waited_for_stream / max(1, load.due)
    setting = of_servers(trial, "stream-limit", [trial.subject])
    return Conclusion(
        "found",
        summary=f"{load.waited_for_stream:,} of {load.due:,} queries ({share:.0%}) waited until the server permitted "
        "another stream on their connection.",
        evidence={
            "waited_for_stream": load.waited_for_stream,
            "waited_percent": round(100 * share, 1),
            "connections": load.connections.established,
        },
        metrics=(trial.record.spec.main_metric, "p50_ms", "p99_ms", "answered_qps"),
        remedy=f"Use more connections (`--set options.clients=...`), or raise the limit of the server{setting}.",
    )
