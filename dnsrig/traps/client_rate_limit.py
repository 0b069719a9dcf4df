"""The server limits each client, and the clients of a replay have other addresses than the original ones.

Response rate limiting drops or truncates answers to a client that sends many queries. Most servers count by prefix: a
/24 for IPv4, a /56 for IPv6. The addresses of a replay come from one range, so hundreds of its clients look like one
client to the server. The result then shows the limit: low CPU use, and missing answers that a server without the limit
would have given.

How it is detected: the heaviest clients, or the clients of the busiest /24, lack answers or get truncated ones, and the
others do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs.row_files import load
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 45
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "the server limits each client"
SOURCE = (
    "P. Vixie and V. Schryver, DNS Response Rate Limiting (2012); BIND rate-limit, Knot DNS mod-rrl, NSD rrl-ratelimit"
)
WEIGHT = "explains"
HEAVY_SHARE = 0.05
"""Share of the clients, or of the prefixes, that counts as heavy: the ones with most queries, at least one."""
LARGEST_LOSS = 0.02
"""Share of the queries of heavy clients without an answer or with a truncated one."""
TIMES = 5
"""Factor by which the share of heavy clients must exceed the share of the others."""
FEWEST = 20
"""Least number of missing or truncated answers of heavy clients."""
PREFIX_CLIENTS = 256
"""Clients of a replay have consecutive addresses, from the second one of the range on."""


@dataclass(frozen=True)
class Halves:
    """Shares of queries without a good answer, for heavy clients and for the others."""

    what: str
    heavy_count: int
    count: int
    heavy_limited: int
    heavy: float
    others: float

    @property
    def told(self) -> bool:
        return self.heavy_limited >= FEWEST and self.heavy > LARGEST_LOSS and self.heavy > TIMES * self.others


def after(trial: Trial) -> Conclusion | None:
    if trial.load.model != "stream":
        return None
    rows = trial.rows(load.REPLAYED_CLIENTS)
    by = {"clients": rows, "prefixes of /24": by_prefix(rows)}
    found = [halves for what, some in by.items() if (halves := halves_of(what, some)) is not None]
    if not found:
        return cannot_tell("One client, or one /24 of them, leaves nobody to compare with.")
    worst = max((halves for halves in found if halves.told), key=lambda halves: halves.heavy, default=None)
    if worst is None:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"Of the {worst.heavy_count:,} of {worst.count:,} {worst.what} that ask most, {worst.heavy:.1%} of the queries had no answer or "
        f"a truncated one; of the others' queries {worst.others:.2%}. The server seems to limit each client.",
        evidence={
            "by": worst.what,
            "heavy": worst.heavy_count,
            "of": worst.count,
            "heavy_limited": worst.heavy_limited,
            "heavy_limited_percent": round(100 * worst.heavy, 2),
            "others_limited_percent": round(100 * worst.others, 2),
        },
        metrics=(trial.record.spec.main_metric, "unanswered_share_percent", "answered_qps"),
        remedy="On the server under test, switch the limit off or set it high enough for all clients together"
        f"{of_servers(trial, 'client-rate-limit', [trial.subject])}; or state that the limit is what was measured.",
    )


def by_prefix(rows: pl.DataFrame) -> pl.DataFrame:
    """The counts summed over clients whose addresses have the same first 24 bits."""
    prefix = ((pl.col("client") + 1) // PREFIX_CLIENTS).alias("client")
    counts = ("answered", "unanswered", "truncated")
    return rows.group_by(prefix).agg(pl.col(name).cast(pl.UInt64).sum() for name in counts)


def halves_of(what: str, rows: pl.DataFrame) -> Halves | None:
    """None if there are no other clients."""
    counted = rows.select(
        asked=pl.col("answered").cast(pl.Int64) + pl.col("unanswered").cast(pl.Int64),
        limited=pl.col("unanswered").cast(pl.Int64) + pl.col("truncated").cast(pl.Int64),
    ).sort("asked", descending=True)
    count = counted.height
    heavy_count = max(1, int(HEAVY_SHARE * count))
    heavy, others = counted.head(heavy_count), counted.tail(count - heavy_count)
    if not others["asked"].sum():
        return None
    heavy_limited, others_limited = int(heavy["limited"].sum()), int(others["limited"].sum())
    heavy_share = heavy_limited / max(1, int(heavy["asked"].sum()))
    return Halves(what, heavy_count, count, heavy_limited, heavy_share, others_limited / int(others["asked"].sum()))
