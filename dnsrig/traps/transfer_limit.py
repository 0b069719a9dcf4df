"""A primary refused transfers because too many were running: its limit, not its speed, decided the result.

A primary with a limit on concurrent transfers answers SERVFAIL or REFUSED to any more, even on a single connection: in
BIND, transfers-out is 10. A secondary then waits for its retry timer, and the measured time is mostly this wait.

How it is detected: of several outstanding transfers some were refused and others done, mixed and not before or after
them, and the refused ones were done later. Or, if they were not tried again, about the same number was always in
progress when one was refused. Zones that are refused in any case are not a sign of a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.runs import transfers
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 40
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
CHART = "transfer-waterfall"
TITLE = "the primary's limit on concurrent transfers refused some"
SOURCE = "BIND 9 Administrator Reference Manual, transfers-out; measured with BIND 9.20.30, 10,000 zones pipelined"
WEIGHT = "explains"
LEAST_SHARE = 0.01
"""Least share of refused attempts: fewer may be zones that were not loaded yet."""
STEADY = 0.5
"""Largest relative deviation of nine tenths of the counts in progress from their median: then there is a limit, even if
no refused zone was tried again."""
MOST_SAMPLES = 300
"""Number of refusals that are examined, evenly chosen."""


@dataclass(frozen=True)
class Limit:
    """The primary's limit on concurrent transfers, estimated from refusals."""

    refused: int
    """Number of refused attempts."""
    attempts: int
    outstanding: int
    """Median number of outstanding transfers when one was refused, including that one."""
    at_work: int
    """Median number of these that were requested before it and done after it."""
    is_steady: bool
    """Whether that was always about the same number."""
    in_a_row: int
    """Median number of transfers done on a connection between two refusals; 0 if no refusal follows a completed
    transfer."""
    zones: int
    """Number of zones, counted for each secondary, that were refused at least once."""
    recovered: int
    """Number of these that were done in another attempt."""

    @property
    def at_a_time(self) -> int:
        """Approximate number of concurrent transfers of the primary, which takes the queries of a connection in their
        order."""
        return self.at_work or self.in_a_row

    @property
    def is_met(self) -> bool:
        crowded = self.outstanding > 1 and self.refused >= LEAST_SHARE * self.attempts
        came_later = self.recovered * 2 >= self.zones
        return crowded and self.at_a_time > 0 and (came_later or (self.at_work > 0 and self.is_steady))


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty():
        return None
    limit = limit_of(rows)
    if limit is None:
        return CLEAR
    if limit.is_met:
        return _found(trial, limit)
    return cannot_tell(
        f"{limit.refused:,} of {limit.attempts:,} attempts were refused, with {limit.outstanding:,} outstanding, and {limit.recovered:,} of these "
        f"{limit.zones:,} zones were done at another time. This does not look like a limit on concurrent transfers; see the primary's log."
    )


def limit_of(rows: pl.DataFrame) -> Limit | None:
    """``rows``: as in `Trial.transfers`. None if no transfer was refused."""
    refused = rows.filter(transfers.refused())
    if refused.is_empty():
        return None
    whole = rows.filter(transfers.good())
    at_work = _at_work(refused.sort("asked_ns").gather_every(-(-refused.height // MOST_SAMPLES)), whole)
    middle, most, fewest = (transfers.number(at_work.quantile(rank, "lower")) for rank in (0.5, 0.95, 0.05))
    of_zone = ["secondary", "zone"]
    zones = refused.select(of_zone).unique()
    return Limit(
        refused=refused.height,
        attempts=rows.height,
        outstanding=int(transfers.number(transfers.outstanding(refused, among=rows).median())),
        at_work=int(middle),
        is_steady=max(most - middle, middle - fewest) <= STEADY * middle,
        in_a_row=_in_a_row(rows),
        zones=zones.height,
        recovered=zones.join(whole.select(of_zone).unique(), on=of_zone).height,
    )


def _at_work(refused: pl.DataFrame, whole: pl.DataFrame) -> pl.Series:
    """Number of transfers in progress at the primary when it refused each of ``refused``.

    It takes the queries of a connection in their order, so transfers that were requested before and ended later were in
    progress. Queries of one write have the same time; they are assumed to be in the order of their names, as zones
    usually are.
    """
    asked, zone = pl.col("asked_ns"), pl.col("zone")
    counts = [
        whole.select(((asked < at) | ((asked == at) & (zone < name))) & (pl.col("last_ns") > end)).to_series().sum()
        for at, name, end in refused.select("asked_ns", "zone", "last_ns").iter_rows()
    ]
    return pl.Series(counts, dtype=pl.Int64)


def _in_a_row(rows: pl.DataFrame) -> int:
    """``rows``: in the order in which attempts ended."""
    runs = (
        rows.select("connection", refused=transfers.refused())
        .group_by("connection", maintain_order=True)
        .agg(pl.col("refused").rle())
        .explode("refused")
        .unnest("refused")
    )
    before_refusal = pl.col("value").shift(-1).over("connection").fill_null(False) & ~pl.col("value")
    return int(transfers.number(runs.filter(before_refusal)["len"].median()))


def _found(trial: Trial, limit: Limit) -> Conclusion:
    rows = transfers.of(trial)
    kinds = transfers.counted(rows.filter(transfers.refused())["outcome"])
    lost = limit.zones - limit.recovered
    in_the_end = f"; {lost:,} of these zones were never completed" if lost else "; all of these zones were done later"
    return Conclusion(
        "found",
        summary=f"{limit.refused:,} of {rows.height:,} attempts were refused ({transfers.told(kinds)}), with {limit.outstanding:,} outstanding in the "
        f"median. The primary accepted about {limit.at_a_time:,} at a time{in_the_end}.",
        evidence={
            "refused": limit.refused,
            "attempts": rows.height,
            **{f"outcome_{kind}": count for kind, count in kinds.items()},
            "outstanding_when_refused": limit.outstanding,
            "not_refused_at_a_time": limit.at_a_time,
            "zones_refused": limit.zones,
            "zones_never_done": lost,
        },
        metrics=(trial.record.spec.main_metric, "zones_per_s", "transfer_failures", "transfer_retries"),
        remedy=_remedy(trial, limit),
    )


def _remedy(trial: Trial, limit: Limit) -> str:
    setting = of_servers(trial, "transfer-limit", trial.hosts_as("primary"))
    return (
        f"Raise the primary's limit on concurrent transfers{setting}, or request at most {limit.at_a_time} at once "
        "(`--set options.window=...`)."
    )
