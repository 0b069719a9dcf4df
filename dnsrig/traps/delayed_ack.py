"""Transfers waited for a delayed acknowledgement: one side held a small segment back, the other waited to acknowledge
the last.

Nagle's algorithm (RFC 896) keeps a small segment until all that was sent before is acknowledged; a receiver that has
nothing to send delays its acknowledgement, under Linux by 40 ms and up to the next tick of its timer (RFC 9293,
3.8.6.3). A primary that writes the messages of a transfer one by one then needs 40 to 44 ms a zone, however fast it is
and however near. Some servers need as much for each new TLS connection: session tickets, sent after the handshake, are
such a small segment before the answer.

How it is told: a stretch counts in which a connection brought nothing though a transfer on it was outstanding, be it
before the first message or between two. Such silences heap up just above 40 ms, with few a little shorter or longer,
and are a good part of all the time, where a round trip takes far less.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.analysis import transfers
from dnsrig.analysis.read import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 41
TITLE = "Nagle's algorithm and delayed acknowledgements held transfers back"
SOURCE = "RFC 896; RFC 9293, 3.7.4 and 3.8.6.3; Linux TCP_DELACK_MIN, 40 ms; measured with PowerDNS 5.1.5, and with NSD 4.15.4 and Knot DNS 3.5.8 over new TLS connections"
WEIGHT = "explains"
SHORTEST_MS = 39.0
LONGEST_MS = 56.0
"""40 ms and a tick of the kernel's timer, which is 1 to 10 ms, and on a busy machine some ticks more; a round trip
comes on top."""
NEAR_MS = 10.0
"""Round trips from here on are too long to be told from the delay."""
TIMES_SHORTER = 3
TIMES_LONGER = 2
"""So many times as many silences as in the stretch of the same width just below, or just above: a heap, and no slope. A
timer never ends early, but on a busy machine late."""
FEWEST = 5
SMALLEST_SHARE = 0.1
"""Of the time in which connections had something to transfer: from here on the delay is worth a remedy."""


@dataclass(frozen=True)
class Heap:
    """The silences just above 40 ms."""

    waits_ns: pl.Series
    transfers: int
    """In which there was one."""
    first: int
    """How many of them were before a transfer's first message."""
    shorter: int
    longer: int
    """Silences in the stretches beside it."""
    share: float
    """Of the time in which connections had something to transfer."""

    @property
    def stands_out(self) -> bool:
        alone = len(self.waits_ns) >= max(TIMES_SHORTER * self.shorter, TIMES_LONGER * self.longer)
        return len(self.waits_ns) >= FEWEST and alone and self.share >= SMALLEST_SHARE


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty() or trial.record.outcome not in JUDGED:
        return None
    if rows.filter(pl.col("first_ns") > 0).is_empty():
        return cannot_tell("No transfer brought a message.")
    round_trip_ms = transfers.round_trip_ms(trial)
    heap = heap_of(rows, 0.0 if round_trip_ms is None else min(round_trip_ms, NEAR_MS))
    if not heap.stands_out:
        return CLEAR
    if round_trip_ms is None:
        return cannot_tell(
            f"{len(heap.waits_ns):,} silences of about 40 ms, but nothing tells how long a round trip was."
        )
    if round_trip_ms > NEAR_MS:
        return cannot_tell(
            f"{len(heap.waits_ns):,} silences of about 40 ms, but a round trip took {digits(round_trip_ms)} ms: too long to tell them apart."
        )
    return _found(trial, heap, round_trip_ms)


def heap_of(rows: pl.DataFrame, round_trip_ms: float) -> Heap:
    """``rows``: those of `Trial.transfers`."""
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
        summary=f"In {heap.transfers:,} of {transfers.of(trial).height:,} transfers nothing came for {tenth_ms:.1f} to {ninth_ms:.1f} ms, mostly "
        f"{where}, where a round trip takes {digits(round_trip_ms, 2)} ms: {heap.share:.0%} of the time in which connections had something to "
        "transfer.",
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
        remedy="The sender should write a transfer's messages together, or set TCP_NODELAY. `--set options.quickack=true` lets the instrument "
        "acknowledge at once and shows what the delay costs; pipelining hides some of it, for then there is always more to send.",
    )
