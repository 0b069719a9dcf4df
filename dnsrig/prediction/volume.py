"""Volume: a large transfer takes its bytes divided by the speed of the path.

S3's first law (L. Peltan, 2025). It holds where the transfer is long against a round trip, and the speed is the rate of
the narrowest link or what congestion control makes of it (`congestion`), whichever is less.
"""

from __future__ import annotations

import math

SOURCE = "S3: L. Peltan, time ≈ volume / speed (2025)"
FACTOR = 1.15
"""Factor for a link whose rate is known: starting and ending, and what is sent twice. What the bytes themselves are off
by comes to this."""

BYTES_PER_RECORD = 49.4
"""S1: the .ch zone, 14 M records in 691 MB of DNS messages, names compressed."""
BYTES_PER_ZONE = 80.0
"""Beside the records: the header and the question (RFC 1035 §4.1), the SOA that ends an AXFR (RFC 5936 §2.2), two bytes
of length."""
CONNECTION_BYTES = 280.0
"""Bytes of one connection's opening and closing, in the direction of the data: as counted on dnsrig's links, 564 bytes
both ways."""
TSIG_BYTES = 88.0
"""A record of hmac-sha256 (RFC 8945 §4.2), with a key whose name has 15 letters, like dnsrig's own."""
MESSAGE_BYTES = 16_000
"""A message of a transfer, as BIND, Knot DNS and NSD fill it (docs/results/primaries.md)."""
PACKET_BYTES = 1500
SEGMENT_BYTES = 1448
"""Bytes of headers in an Ethernet packet: 20 for IPv4, 20 for TCP, 12 for timestamps (RFC 7323)."""
TLS_FACTOR = 1.02
"""S3: a large zone over TLS takes 2 % longer. Of records that are filled, RFC 8446 §5.2 explains 0.2 %; the rest is not
explained."""
REPLICA_FACTOR, REPLICA_TLS_FACTOR = 1.16, 1.12
"""S3: a large zone by a replica of the database against AXFR, and the replica over TLS against the replica."""
REPLICA_SPREAD = 2.0
"""Beside what the law itself is off by: these are of one large zone, and S3's replica of many tiny ones took less than
half of what they say."""


def bytes_of(zones: int, records: float, bytes_per_record: float = BYTES_PER_RECORD) -> float:
    """Bytes of DNS messages of the AXFR of ``zones`` zones of ``records`` records each."""
    return zones * (records * bytes_per_record + BYTES_PER_ZONE)


def tsig_bytes(nbytes: float) -> float:
    """The TSIG records of one zone's transfer: all primaries that were measured sign every message."""
    return math.ceil(nbytes / MESSAGE_BYTES) * TSIG_BYTES


def payload_rate(rate_bytes_per_s: float) -> float:
    """What TCP carries over a link of this rate in full packets, bytes a second."""
    return rate_bytes_per_s * SEGMENT_BYTES / PACKET_BYTES


def time_s(nbytes: float, bytes_per_s: float) -> float:
    """Nothing takes no time, and over a path without a limit everything does."""
    if nbytes < 0 or bytes_per_s <= 0:
        raise ValueError(f"{nbytes} bytes at {bytes_per_s} bytes a second")
    return 0.0 if math.isinf(bytes_per_s) else nbytes / bytes_per_s
