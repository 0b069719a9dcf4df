"""Transfers waited for a delayed acknowledgement: one side held back a small segment, and the other delayed its
acknowledgement of the previous one.

Nagle's algorithm (RFC 896) holds a small segment back until all earlier data is acknowledged. A receiver that has
nothing to send delays its acknowledgement, under Linux by 40 ms plus at most one tick of its timer (RFC 9293, 3.8.6.3).
A primary that writes the messages of a transfer one by one then needs 40 to 44 ms for each zone, however fast and near
it is. Some servers need the same time for each new TLS connection, because they send session tickets after the
handshake: a small segment just before the answer.

How it is detected: a silence is a time in which a connection with an outstanding transfer received nothing, before the
first message or between two messages. The trap is found if many silences last just above 40 ms, few a little less or
more, they make up a large part of the whole time, and a round trip takes far less than 40 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 41
GROUP = "zone transfers"
OUTCOMES = JUDGED
CHART = "transfer-waterfall"
TITLE = "transfers waited for delayed acknowledgements (Nagle's algorithm)"
SOURCE = "RFC 896; RFC 9293, 3.7.4 and 3.8.6.3; Linux TCP_DELACK_MIN, 40 ms; measured with PowerDNS 5.1.5, and with NSD 4.15.4 and Knot DNS 3.5.8 over new TLS connections"
WEIGHT = "explains"
SHORTEST_MS = 39.0
LONGEST_MS = 56.0
"""40 ms plus a tick of the kernel's timer, which is 1 to 10 ms, and on a busy machine some ticks more. The round trip
is added to this."""
NEAR_MS = 10.0
"""Longest round trip that can be distinguished from the delay."""
TIMES_SHORTER = 3
TIMES_LONGER = 2
"""Factors by which silences must outnumber those in the range of the same width just below and just above. The factors
differ because a timer never ends early, but on a busy machine late."""
FEWEST = 5
SMALLEST_SHARE = 0.1
"""Smallest share of the time in which connections had something to transfer that needs a remedy."""


@dataclass(frozen=True)
class Heap:
    """The silences just above 40 ms."""

    waits_ns: pl.Series
    transfers: int
    """Number of transfers with such a silence."""
    first: int
    """Number of silences before the first message of a transfer."""
    shorter: int
    longer: int
    """Number of silences in the ranges just below and just above."""
    share: float
    """Share of the time in which connections had something to transfer."""

    @property
    def stands_out(self) -> bool:
        alone = len(self.waits_ns) >= max(TIMES_SHORTER * self.shorter, TIMES_LONGER * self.longer)
        return len(self.waits_ns) >= FEWEST and alone and self.share >= SMALLEST_SHARE


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty():
        return None
    if rows.filter(pl.col("first_ns") > 0).is_empty():
        return cannot_tell("No transfer received a message.")
    round_trip_ms = transfers.round_trip_ms(trial)
    heap = heap_of(rows, 0.0 if round_trip_ms is None else min(round_trip_ms, NEAR_MS))
    if not heap.stands_out:
        return CLEAR
    if round_trip_ms is None:
        return cannot_tell(f"{len(heap.waits_ns):,} silences of about 40 ms, but the round trip is not known.")
    if round_trip_ms > NEAR_MS:
        return cannot_tell(
            f"{len(heap.waits_ns):,} silences of about 40 ms, but a round trip took {digits(round_trip_ms)} ms: too long to distinguish them from it."
        )
    return _found(trial, heap, round_trip_ms)


def heap_of(rows: pl.DataFrame, round_trip_ms: float) -> Heap:
    """``rows``: as in `Trial.transfers`."""
    silent = transfers.silences(rows)
    low_ns, high_ns = SHORTEST_MS * 1e6, (LONGEST_MS + round_trip_ms) * 1e6
    width_ns = high_ns - low_ns
    wait = pl.col("wait_ns")
    inside = silent.filter(wait.is_between(low_ns, high_ns))
    below = silent.filter((wait >= low_ns - width_ns) & (wait < low_ns)).height
    above = silent.filter((wait > high_ns) & (wait <= high_ns + width_ns)).height
    return Heap(
        waits_ns=inside["wait_ns"],
        transfers=inside["row"].n_unique(),
        first=int(inside["first"].sum()),
        shorter=below,
        longer=above,
        share=int(inside["wait_ns"].sum()) / max(1, transfers.connections_time_ns(rows)),
    )


def _found(trial: Trial, heap: Heap, round_trip_ms: float) -> Conclusion:
    count, typical_ms = len(heap.waits_ns), transfers.number(heap.waits_ns.median()) / 1e6
    tenth_ms, ninth_ms = (transfers.number(heap.waits_ns.quantile(rank)) / 1e6 for rank in (0.1, 0.9))
    before_first = heap.first * 2 > count
    where = "before the first message of a transfer" if before_first else "between two messages of a transfer"
    return Conclusion(
        "found",
        summary=f"In {heap.transfers:,} of {transfers.of(trial).height:,} transfers nothing arrived for {tenth_ms:.1f} to {ninth_ms:.1f} ms, mostly "
        f"{where}, although a round trip takes {digits(round_trip_ms, 2)} ms. This is {heap.share:.0%} of the time in which connections had "
        "something to transfer.",
        evidence={
            "waits": count,
            "wait_median_ms": round(typical_ms, 2),
            "share_percent": round(100 * heap.share, 1),
            "waits_before_first_message": heap.first,
            "waits_a_little_shorter": heap.shorter,
            "waits_a_little_longer": heap.longer,
            "round_trip_ms": round(round_trip_ms, 4),
        },
        metrics=(trial.record.spec.main_metric, "zones_per_s", "transfer_p50_ms", "transfer_p99_ms"),
        remedy="The sender should write a transfer's messages together, or set TCP_NODELAY. With `--set options.quickack=true` the instrument "
        "acknowledges at once, which shows the cost of the delay. Pipelining hides a part of it, as there is then always more to send.",
    )
