"""A small zone waited for a large one on the same connection.

A primary that answers in order sends the whole of a large zone before a small one that was requested after it. The
protocol allows answers in any order, and even mixed messages of several transfers, because each message has the id of
its query; few servers use this. So a change of a small zone is delayed by the time of the large transfer, and its
transfer time depends on another zone.

How it is detected: a transfer was requested before the last message of another transfer on its connection, which is at
least twenty times as large; its own first message arrived after that; and most of its wait passed while the large zone
was sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
GROUP = "zone transfers"
OUTCOMES = JUDGED
CHART = "transfer-waterfall"
TITLE = "small zones waited behind a large one on the same connection"
SOURCE = "RFC 5936, 4.1; RFC 9103, 6; measured: BIND interleaves, Knot DNS, NSD and PowerDNS answer in order"
WEIGHT = "explains"
TIMES_LARGER = 20
"""Ratio of sizes in bytes above which one zone is large compared with another."""
MOST_LARGE = 100
"""Number of large zones that are examined, the largest first."""
SHORTEST_MS = 10.0
"""Shortest wait that matters."""
LEAST_PART = 0.5
"""Least part of the wait for the first message in which the large zone was being sent."""


@dataclass(frozen=True)
class Queue:
    """Small transfers that waited, and the large ones before them."""

    waits_ns: pl.Series
    """The wait of each for its first message."""
    behind: int
    """Number of large transfers that others waited for."""
    nbytes: int
    """Size of the largest one."""
    zone: str
    """Name of the largest one: untrusted text."""
    others_ns: float | None
    """Median wait of transfers without a large one before them; None if there are no such transfers."""


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty():
        return None
    if rows.filter(transfers.good()).is_empty():
        return cannot_tell("No transfer was finished.")
    queue = queue_of(rows)
    return CLEAR if queue is None else _found(trial, queue)


def queue_of(rows: pl.DataFrame) -> Queue | None:
    """``rows``: as in `Trial.transfers`. None if no small transfer waited."""
    answered = rows.with_row_index("row").filter(pl.col("first_ns") > 0)
    names = ("row", "zone", "bytes", "asked_ns", "first_ns", "last_ns")
    largest = answered.sort("bytes", descending=True).head(MOST_LARGE)
    large = largest.select("connection", *(pl.col(name).alias(f"large_{name}") for name in names))
    pairs = answered.join(large, on="connection").filter(
        (pl.col("large_bytes") >= TIMES_LARGER * pl.col("bytes"))
        & (pl.col("large_asked_ns") <= pl.col("asked_ns"))
        & (pl.col("asked_ns") < pl.col("large_last_ns"))
        & (pl.col("large_last_ns") <= pl.col("first_ns"))
    )
    pairs = pairs.with_columns(
        wait_ns=pl.col("first_ns") - pl.col("asked_ns"),
        blocked_ns=pl.col("large_last_ns") - pl.max_horizontal("asked_ns", "large_first_ns"),
    )
    small = pairs.group_by("row").agg(pl.col("wait_ns").first(), pl.col("blocked_ns").sum())
    small = small.filter(
        (pl.col("blocked_ns") >= SHORTEST_MS * 1e6) & (pl.col("blocked_ns") >= LEAST_PART * pl.col("wait_ns"))
    )
    if small.is_empty():
        return None
    waited_for = pairs.join(small, on="row", how="semi").sort("large_bytes", descending=True)
    others = answered.join(small, on="row", how="anti").join(
        waited_for, left_on="row", right_on="large_row", how="anti"
    )
    return Queue(
        waits_ns=small["wait_ns"],
        behind=waited_for["large_row"].n_unique(),
        nbytes=int(waited_for["large_bytes"][0]),
        zone=str(waited_for["large_zone"][0]),
        others_ns=None if others.is_empty() else transfers.number((others["first_ns"] - others["asked_ns"]).median()),
    )


def _found(trial: Trial, queue: Queue) -> Conclusion:
    count = len(queue.waits_ns)
    median_ms = transfers.number(queue.waits_ns.median()) / 1e6
    longest_ms = transfers.number(queue.waits_ns.max()) / 1e6
    others_ms = None if queue.others_ns is None else queue.others_ns / 1e6
    beside = "" if others_ms is None else f"; other transfers waited {digits(others_ms)} ms in the median"
    large = "a zone" if queue.behind == 1 else f"{queue.behind:,} zones"
    return Conclusion(
        "found",
        summary=f"{count:,} of {transfers.of(trial).height:,} transfers waited up to {digits(longest_ms)} ms for their first message, mostly while "
        f"{large} of up to {digits(queue.nbytes / 1e6)} MB on the same connection was being sent{beside}.",
        evidence={
            "transfers_behind": count,
            "wait_median_ms": round(median_ms, 2),
            "wait_longest_ms": round(longest_ms, 2),
            "wait_of_others_median_ms": None if others_ms is None else round(others_ms, 3),
            "large_zones": queue.behind,
            "largest_bytes": queue.nbytes,
            "largest_zone": queue.zone,
        },
        metrics=(trial.record.spec.main_metric, "transfer_p50_ms", "transfer_p99_ms"),
        remedy="Transfer large zones on a separate connection (`--set options.connections=...` spreads them only by chance), or use a primary "
        "that interleaves. A window does not help here.",
    )
