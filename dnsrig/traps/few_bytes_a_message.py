"""Messages were far smaller than possible, so a transfer needed many of them.

A message over TCP may have 65,535 bytes. A message of 16 KiB already saves all that name compression can save, because
its pointers reach no further. Each message costs a header, a question, a write, a read, perhaps a signature (TSIG), and
a segment. A tiny zone that arrives in three messages (SOA, records, SOA) costs more than one in a single message.

How it is detected: large transfers with only a few KiB per message, or tiny ones with more than one message.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 46
GROUP = "zone transfers"
OUTCOMES = JUDGED
TITLE = "few bytes in each message"
SOURCE = "RFC 5936, 2.2 and 3.4: as many records as fit in a message; measured: PowerDNS 5.1.5 sends a tiny zone in three messages"
WEIGHT = "explains"
LARGE_BYTES = 100 * 1024
"""Size of a transfer above which full messages are expected."""
FULL_BYTES = 16 * 1024
"""Size of a full message: the reach of compression pointers, which servers usually fill."""
SMALL_MEAN_BYTES = 4 * 1024
TINY_BYTES = 4 * 1024
"""Size of a transfer that fits in one message of any kind."""
LEAST_PART = 0.5
"""Least part of the transfers of a size that must be affected."""


@dataclass(frozen=True)
class Messages:
    """The completed transfers of one size."""

    transfers: int
    concerned: int
    """Number of transfers with few bytes in each message, or with several messages instead of one."""
    messages: int
    """Number of messages of the affected transfers; the other fields are about these, too."""
    nbytes: int
    needed: int
    """Number of messages of `FULL_BYTES` that would have been enough."""

    @property
    def mean_bytes(self) -> float:
        return self.nbytes / max(1, self.messages)

    @property
    def stands_out(self) -> bool:
        return self.concerned > 0 and self.concerned >= LEAST_PART * self.transfers


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty():
        return None
    whole = rows.filter((pl.col("outcome") == "done") & (pl.col("messages") > 0))
    if whole.is_empty():
        return cannot_tell("No transfer was completed.")
    large = messages_of(
        whole.filter(pl.col("bytes") >= LARGE_BYTES), pl.col("bytes") < SMALL_MEAN_BYTES * pl.col("messages")
    )
    tiny = messages_of(whole.filter(pl.col("bytes") <= TINY_BYTES), pl.col("messages") > 1)
    if not large.stands_out and not tiny.stands_out:
        return CLEAR
    return _found(trial, large, tiny)


def messages_of(rows: pl.DataFrame, concerned: pl.Expr) -> Messages:
    """``rows``: completed transfers, all of one size."""
    of_it = rows.filter(concerned)
    needed = of_it.select(-(-pl.col("bytes").cast(pl.Int64) // FULL_BYTES)).to_series()
    return Messages(
        transfers=rows.height,
        concerned=of_it.height,
        messages=int(of_it["messages"].sum()),
        nbytes=int(of_it["bytes"].sum()),
        needed=int(needed.sum()),
    )


def _found(trial: Trial, large: Messages, tiny: Messages) -> Conclusion:
    setting = of_servers(trial, "few-bytes-a-message", trial.hosts_as("primary"))
    told = []
    if large.stands_out:
        told.append(
            f"{large.concerned:,} of {large.transfers:,} transfers of {LARGE_BYTES // 1024} KiB and more had {large.mean_bytes:,.0f} bytes in "
            f"each message on average: {large.messages:,} messages, while {large.needed:,} of 16 KiB would be enough"
        )
    if tiny.stands_out:
        told.append(
            f"{tiny.concerned:,} of {tiny.transfers:,} transfers of no more than {TINY_BYTES // 1024} KiB arrived in "
            f"{digits(tiny.messages / tiny.concerned)} messages each, while one would be enough"
        )
    return Conclusion(
        "found",
        summary=f"{'; '.join(told)}.",
        evidence={
            "large_transfers": large.concerned or None,
            "large_bytes_a_message": round(large.mean_bytes, 1) if large.concerned else None,
            "large_messages": large.messages or None,
            "large_messages_needed": large.needed or None,
            "tiny_transfers": tiny.concerned or None,
            "tiny_messages_a_transfer": round(tiny.messages / tiny.concerned, 2) if tiny.concerned else None,
        },
        metrics=(trial.record.spec.main_metric, "zones_per_s", "records_per_s", "transferred_mb_per_s"),
        remedy=f"Let the primary put as many records into a message as fit{setting}; otherwise the figure includes the cost of small messages.",
    )
