"""The server's first flight over QUIC was longer than it may be, so each full handshake took a round trip more.

Until a client has shown that it gets what is sent to its address, a server may send it three times as many bytes as it
has received (RFC 9000, 8.1). The first flight of dnsrig's client has 1,200 bytes, so the server's has at most 3,600.
With a long certificate chain the server stops there and waits for the client's next packet. Over TCP the same chain
fits into the initial window of ten segments (RFC 6928).

The trap looks at the fewest bytes that came from the server until a full handshake was done. So packets that were lost
and sent again do not count. A server that sends Retry packets has no such limit.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "a certificate chain too long for the first flight of QUIC"
SOURCE = "RFC 9000, 8.1: address validation during the handshake"
WEIGHT = "explains"
FLIGHT_BYTES = 1_200
"""The first flight of a client: it fills a datagram up to this size at least (RFC 9000, 14.1)."""
LIMIT_BYTES = 3 * FLIGHT_BYTES
"""What a server may send before the client's address is validated (RFC 9000, 8.1)."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if load.transport != "doq":
        return None
    quic = load.connections.quic
    if not quic.full_handshake_bytes_min:
        return cannot_tell("There was no full handshake, or the run is of an earlier version.")
    if quic.retries or quic.full_handshake_bytes_min <= LIMIT_BYTES:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"A full handshake brought at least {quic.full_handshake_bytes_min:,} bytes from the server, which may send "
        f"{LIMIT_BYTES:,} before the client's second flight: each took a round trip more than necessary.",
        evidence={"handshake_bytes": quic.full_handshake_bytes_min, "limit_bytes": LIMIT_BYTES},
        metrics=(trial.record.spec.main_metric, "handshake_p50_ms", "handshakes_per_s", "p99_ms"),
        remedy="Give the server a shorter chain: a certificate with an ECDSA key, few names, and no root in the chain; or "
        "compress certificates (RFC 8879) where both sides can.",
    )
