"""Round trips: many small zones take zones × round trips a zone × RTT / workers.

S3's second law (L. Peltan, 2025): what a worker does for a zone is wait, so twice the workers halve the time. What a
zone costs follows from the policy:

- one connection a zone: TCP's handshake (RFC 9293 §3.5), with TLS another (RFC 8446 §2; resuming a session saves work,
  but no round trip unless early data is used), then the question and its answer
- a connection that is kept: the question alone
- pipelined: the same, but a whole window of zones shares it: the window is the workers
- before that the SOA, where the secondary asks for it: over UDP or on the same connection one more; where it takes a
  connection of its own, that one's handshakes again
- a database's replica: nothing a zone; zones that are loaded from a remote database one by one: three, as S3's own
  figure says

A zone larger than the initial window (RFC 6928: 10 segments) adds slow start's rounds.

Turned round, S3's times say 2.5 (AXFR, connections kept), 3.7 (remote load) and 8.7 (AXFR over TLS) round trips of 250
ms. Its link keeps order under jitter, and so its round trips really took about 310 ms (`jitter`): then it is 2.0, 3.0
and 7.0, whole numbers. Two are a SOA and an AXFR on a connection that is kept. Over TLS the two take a connection each,
which is six; the seventh is not explained here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dnsrig.prediction.volume import SEGMENT_BYTES
from dnsrig.servers.behaviour import Policy, Soa, Transport

SOURCE = "S3: L. Peltan, time ≈ zones × round trips × RTT / workers (2025)"
FACTOR = 1.3
"""S3's own times are met within 20 %; a secondary may do a round trip more than we know of."""

POLICIES: Mapping[Policy, str] = {
    "one": "a new connection for each zone",
    "reused": "connections reused",
    "pipelined": "pipelined",
    "replica": "a replica of the primary's database",
    "remote": "zones loaded from a remote database",
}
"""Policy -> what it means, in a few words."""
INITIAL_WINDOW = 10
"""Segments (RFC 6928)."""
REMOTE = 3
"""Round trips of a zone that is loaded from a far database: S3's figure, at the round trip that its link really had."""
SLOW_START = "slow start"
CONNECTS: tuple[Policy, ...] = ("one",)
"""Policies by which each zone has a connection of its own."""


def of_zone(policy: Policy, transport: Transport, soa: Soa) -> dict[str, int]:
    """The round trips of one zone by what they are for; round trips of a connection that many zones share are no
    zone's."""
    if policy == "replica":
        return {}
    if policy == "remote":
        return {"load": REMOTE}
    connect = {"connect": 1, **({"TLS handshake": 1} if transport == "xot" else {})}
    found: dict[str, int] = {}
    if soa == "own":
        found |= {"SOA's connection": sum(connect.values())}
    if soa != "none":
        found |= {"SOA": 1}
    return found | (connect if policy in CONNECTS else {}) | {"AXFR": 1}


def slow_start_rounds(nbytes: float, full_bytes: float = math.inf) -> int:
    """Round trips beyond the first until ``bytes`` have come over a new connection, whose window doubles each time;
    those with a window of ``full_bytes`` or more do not count, for the path is full then."""
    windows = min(nbytes, full_bytes) / (INITIAL_WINDOW * SEGMENT_BYTES)
    return max(0, math.ceil(math.log2(windows + 1)) - 1) if windows > 0 else 0


def zone_s(round_trips: float, rtt_s: float, loss: float = 0.0, rto_s: float = 0.0) -> float:
    """How long a worker waits for a zone. Each round trip is a packet each way; one that is lost has none behind it
    that would tell, and waits for a time-out (RFC 6298)."""
    if min(round_trips, rtt_s, loss, rto_s) < 0:
        raise ValueError(f"{round_trips} round trips of {rtt_s} s, loss of {loss}, time-outs of {rto_s} s")
    return round_trips * (rtt_s + 2 * loss * rto_s)


def time_s(zones: int, zone_s: float, workers: int) -> float:
    """Workers take zones in turn: the last round has as many as are left."""
    if min(zones, zone_s) < 0 or workers < 1:
        raise ValueError(f"{zones} zones of {zone_s} s, {workers} workers")
    return math.ceil(zones / workers) * zone_s


def implied(time_s: float, zones: int, rtt_s: float, workers: int) -> float:
    """Round trips a zone that a measured time comes to: the law turned round."""
    if zones < 1 or rtt_s <= 0:
        raise ValueError(f"{zones} zones, round trips of {rtt_s} s")
    return time_s * workers / (zones * rtt_s)
