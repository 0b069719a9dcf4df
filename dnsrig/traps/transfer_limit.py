"""A primary refused transfers because too many were running: its own limit, and not its speed, decided.

A primary that serves so many transfers at a time answers SERVFAIL or REFUSED to the excess, also on a single
connection: BIND's transfers-out is 10. A secondary then waits for its retry timer, and the time that is measured is
mostly that wait.

How it is told: with several outstanding some were refused and others done, in between and not before or after, and the
refused ones were done at another moment; or, where they were not tried again, always about as many were at work when
one was refused. Zones that are refused whatever else goes on are no sign of a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.analysis import transfers
from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 40
TITLE = "the primary's limit of transfers at a time refused the excess"
SOURCE = "BIND 9 Administrator Reference Manual, transfers-out; measured with BIND 9.20.30, 10,000 zones pipelined"
WEIGHT = "explains"
LEAST_SHARE = 0.01
"""Of the attempts refused: less may be a zone that was not loaded yet."""
STEADY = 0.5
"""Nine tenths of the counts at work are within so much of their median: a limit, even where nothing was tried again."""
MOST_SAMPLES = 300
"""Refusals looked at, evenly chosen."""


@dataclass(frozen=True)
class Limit:
    """What refusals say of how many transfers a primary does at a time."""

    refused: int
    """Attempts."""
    attempts: int
    outstanding: int
    """How many were outstanding when one was refused, in the median, itself among them."""
    at_work: int
    """How many of those were asked for before it and done after it, in the median."""
    is_steady: bool
    """Whether that was always about the same number."""
    in_a_row: int
    """How many were done on a connection between one that was refused and the next, in the median; 0 where none was
    refused after one was done."""
    zones: int
    """How many zones, of each secondary, were refused at least once."""
    recovered: int
    """How many of those were done in another attempt."""

    @property
    def at_a_time(self) -> int:
        """How many the primary does at a time, about: it takes the queries of a connection in their order, and so
        tells."""
        return self.at_work or self.in_a_row

    @property
    def is_met(self) -> bool:
        crowded = self.outstanding > 1 and self.refused >= LEAST_SHARE * self.attempts
        came_later = self.recovered * 2 >= self.zones
        return crowded and self.at_a_time > 0 and (came_later or (self.at_work > 0 and self.is_steady))


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty() or trial.record.outcome not in JUDGED:
        return None
    limit = limit_of(rows)
    if limit is None:
        return CLEAR
    if limit.is_met:
        return _found(trial, limit)
    return cannot_tell(
        f"{limit.refused:,} of {limit.attempts:,} attempts were refused, with {limit.outstanding:,} outstanding, and {limit.recovered:,} of these "
        f"{limit.zones:,} zones were done at another moment: a limit of transfers at a time does not show. The primary's log says what it is."
    )


def limit_of(rows: pl.DataFrame) -> Limit | None:
    """``rows``: those of `Trial.transfers`. None where none was refused."""
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
    """How many transfers were under way at the primary when it refused each of ``refused``.

    On a connection it takes queries in their order, so what had been asked for before, and ended later, was under way.
    Queries of one write have the same time: they are taken to be in the order of their names, as zones mostly are asked
    for.
    """
    asked, zone = pl.col("asked_ns"), pl.col("zone")
    counts = [
        whole.select(((asked < at) | ((asked == at) & (zone < name))) & (pl.col("last_ns") > end)).to_series().sum()
        for at, name, end in refused.select("asked_ns", "zone", "last_ns").iter_rows()
    ]
    return pl.Series(counts, dtype=pl.Int64)


def _in_a_row(rows: pl.DataFrame) -> int:
    """``rows`` stand in the order in which attempts ended."""
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
    in_the_end = f"; {lost:,} of these zones were never done" if lost else "; all of these zones were done later"
    return Conclusion(
        "found",
        summary=f"{limit.refused:,} of {rows.height:,} attempts were refused ({transfers.told(kinds)}), with {limit.outstanding:,} outstanding in the "
        f"median: about {limit.at_a_time:,} at a time were not{in_the_end}.",
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
        f"On the primary, raise its limit of transfers at a time{setting}; or ask for no more than {limit.at_a_time} at once "
        "(`--set options.window=...`)."
    )
