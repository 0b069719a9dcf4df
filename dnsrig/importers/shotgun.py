"""DNS Shotgun (CZ.NIC): ``data/<sender>.json`` of its releases, and the stream of DNS metrics of later versions.

Sources: release 20240219, ``replay/dnssim/src/dnsjit/output/dnssim.lua`` (`export`) and ``dnssim/common.c``. A
``latency`` has timeout + 1 bins of a millisecond; a query is in the bin of its whole milliseconds, and the last bin
has those that were not answered in time. The clock starts when the query is handed to the client that asks it, before
its connection is there: what the replay itself is late is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dnsrig import foreign
from dnsrig.importers import MS, Asked, Bucket, NotUnderstood, Result, S, Stretch, dns_metrics, ends, number

FILES = "`data/<sender>.json`, or a stream of DNS metrics"
VERSION = 20200527
FILE = (
    *("version", "merged", "stats_interval_ms", "timeout_ms", "idle_timeout_ms", "handshake_timeout_ms", "discarded"),
    *("stats_sum", "stats_periodic"),
)
STATISTICS = (
    *("since_ms", "until_ms", "requests", "ongoing", "answers", "latency", "conn_active", "conn_handshakes"),
    *("conn_handshakes_failed", "conn_resumed", "conn_quic_0rtt_loaded", "quic_0rtt_sent", "quic_0rtt_answered"),
)
LATE = "What the replay itself was late is not in its latencies."


def read(data: bytes, asked: Asked) -> Result:
    if b'"stats_sum":' not in data[:100_000] or b'"schema_version"' in data[:10_000]:
        found = dns_metrics.read(data, asked)
        return replace(found, missing=[LATE, *found.missing])
    told = foreign.json_value(data)
    if told.get("version") != VERSION:
        raise ValueError(f"a file of version {told.get('version')}, where {VERSION} is known")
    whole, timeout_ms = told["stats_sum"], number(told["timeout_ms"])
    begun_ms = number(whole["since_ms"])
    sent, answered = number(whole["requests"]), number(whole["answers"])
    discarded = number(told.get("discarded", 0))
    return Result(
        version=str(VERSION),
        basis="sending",
        model="stream",
        resolution_ns=MS,
        started_ns=begun_ms * MS,
        duration_s=(number(whole["until_ms"]) - begun_ms) / 1000,
        sent=sent,
        answered=answered,
        timeouts=max(0, sent - answered),
        rcodes={name.removeprefix("rcode_").upper(): number(whole[name]) for name in whole if _is_rcode(name, whole)},
        timeout_ns=timeout_ms * MS,
        stretches=list(_stretches(told, whole, begun_ms, timeout_ms)),
        missing=[
            LATE,
            *([f"{discarded:,} packets were not replayed."] if discarded else []),
            *_not_understood(told, whole),
        ],
    )


def _not_understood(told: Any, whole: Any) -> list[str]:
    unknown = NotUnderstood("field")
    unknown.fields(told, FILE)
    rcodes = [name for name in whole if name.startswith("rcode_")]
    unknown.fields(whole, (*STATISTICS, *rcodes), "stats_sum.")
    return unknown.sentences


def _is_rcode(name: str, counts: Any) -> bool:
    return name.startswith("rcode_") and bool(counts[name])


def _stretches(told: Any, whole: Any, begun_ms: int, timeout_ms: int) -> Iterator[Stretch]:
    for part in told.get("stats_periodic") or [whole]:
        since_ms, until_ms = number(part["since_ms"]), number(part["until_ms"])
        bins = part["latency"]
        if len(bins) != timeout_ms + 1:
            raise ValueError(f"{len(bins)} bins of latency, where {timeout_ms + 1} are expected")
        buckets = [
            Bucket(at * MS, (at + 1) * MS - 1 if at < timeout_ms else at * MS, number(n))
            for at, n in enumerate(bins)
            if n
        ]
        sent, answered = number(part["requests"]), number(part["answers"])
        yield Stretch(
            (since_ms - begun_ms) * MS / S,
            (until_ms - since_ms) * MS / S,
            sent,
            answered,
            timeouts=number(bins[-1]),
            tags=ends("sending", buckets),
        )
