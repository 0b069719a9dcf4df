"""A primary refused transfers because too many were running: its own limit, and not its speed, decided.

A primary that serves so many transfers at a time answers SERVFAIL or REFUSED to the excess, also on a single connection: BIND's
transfers-out is 10. A secondary then waits for its retry timer, and the time that is measured is mostly that wait.

How it is told: when transfers were refused, many were outstanding, and clearly fewer of those were done in the end; or the same zones were done
at another moment. Zones that are refused whatever else goes on are no sign of a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dnsrig.analysis import transfers
from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 40
TITLE = "the primary's limit of transfers at a time refused the excess"
SOURCE = "BIND 9 Administrator Reference Manual, transfers-out; measured with BIND 9.20.30, 10,000 zones pipelined"
CLEARLY_FEWER = 0.8
"""Outstanding that were done, of all outstanding when one was refused: below it the limit shows by itself."""
LEAST_SHARE = 0.1
"""Of the attempts refused, from which on it shows by zones that were refused and done later, too."""
KNOWN_SETTINGS = {"bind": "transfers-out (10 by default)", "zones": "concurrent-max"}
"""By kind of the primary: what sets its limit."""


@dataclass(frozen=True)
class Limit:
    """What refusals say of how many transfers a primary does at a time."""

    refused: int
    """Attempts."""
    attempts: int
    alone: int
    """Refused with no other outstanding."""
    begins_at: int
    """The fewest that were outstanding, itself among them, when one was refused; those alone left out."""
    typical: int
    """The median of the same."""
    busy: int
    """How many of those outstanding then were done in the end, in the median: what the primary does at a time."""
    zones: int
    """How many zones, of each secondary, were refused at least once."""
    recovered: int
    """How many of those were done in another attempt."""

    @property
    def is_alone(self) -> bool:
        return self.alone * 2 > self.refused

    @property
    def is_met(self) -> bool:
        if self.is_alone or self.busy == 0:
            return False
        came_later = self.recovered * 2 >= self.zones and self.refused >= LEAST_SHARE * self.attempts
        return self.busy <= CLEARLY_FEWER * self.typical or (came_later and self.busy < self.typical)


def after(trial: Trial) -> Conclusion | None:
    rows = transfers.of(trial)
    if rows.is_empty() or trial.record.outcome not in JUDGED:
        return None
    limit = limit_of(rows)
    if limit is None:
        return CLEAR
    if limit.is_met:
        return _found(trial, limit)
    if limit.is_alone:
        return cannot_tell(
            f"{limit.refused:,} transfers were refused, {limit.alone:,} of them with no other outstanding: that is no limit of transfers at a "
            "time. The primary's log says what it is."
        )
    return cannot_tell(
        f"{limit.refused:,} transfers were refused, but of {limit.typical:,} outstanding then {limit.busy:,} were done: a limit of transfers at a "
        "time does not show. The primary's log says what it is."
    )


def limit_of(rows: pl.DataFrame) -> Limit | None:
    """``rows``: those of `Trial.transfers`. None where none was refused."""
    refused = rows.filter(transfers.refused())
    if refused.is_empty():
        return None
    whole = rows.filter(transfers.good())
    of_all, of_whole = (transfers.outstanding(refused, among=others) for others in (rows, whole))
    crowded = of_all > 1
    of_zone = ["secondary", "zone"]
    zones = refused.select(of_zone).unique()
    return Limit(
        refused=refused.height,
        attempts=rows.height,
        alone=refused.height - int(crowded.sum()),
        begins_at=int(transfers.number(of_all.filter(crowded).min())),
        typical=int(transfers.number(of_all.filter(crowded).median())),
        busy=int(transfers.number(of_whole.filter(crowded).median())),
        zones=zones.height,
        recovered=zones.join(whole.select(of_zone).unique(), on=of_zone).height,
    )


def _found(trial: Trial, limit: Limit) -> Conclusion:
    rows = transfers.of(trial)
    kinds = transfers.counted(rows.filter(transfers.refused())["outcome"])
    lost = limit.zones - limit.recovered
    in_the_end = f"; {lost:,} of these zones were never done" if lost else "; all of these zones were done later"
    return Conclusion(
        "found",
        summary=f"{limit.refused:,} of {rows.height:,} attempts were refused ({transfers.told(kinds)}) while {limit.begins_at:,} or more "
        f"were outstanding, typically {limit.typical:,}, of which {limit.busy:,} were done{in_the_end}.",
        evidence={
            "refused": limit.refused,
            "attempts": rows.height,
            **{f"outcome_{kind}": count for kind, count in kinds.items()},
            "outstanding_when_refused_fewest": limit.begins_at,
            "outstanding_when_refused_median": limit.typical,
            "of_these_done_median": limit.busy,
            "zones_refused": limit.zones,
            "zones_never_done": lost,
        },
        metrics=(trial.record.spec.main_metric, "zones_per_s", "transfer_failures", "transfer_retries"),
        remedy=_remedy(trial, limit),
    )


def _remedy(trial: Trial, limit: Limit) -> str:
    hosts = trial.record.spec.hosts.values()
    kinds = sorted({host.server.kind for host in hosts if host.role == "primary" and host.server is not None})
    settings = " and ".join(KNOWN_SETTINGS.get(kind, "its limit of transfers at a time") for kind in kinds)
    return (
        f"On the primary, raise {settings or 'its limit of transfers at a time'}; or ask for no more than {max(1, limit.busy)} at once "
        "(`--set options.window=...`)."
    )
