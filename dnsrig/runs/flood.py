"""A flood beside a replay (the procedure `overload`): what became of the clients' queries while it lasted, and when
their latency was again what it was before. Pure."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.latency import Interval
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.trial import Trial

PERCENTILE = 90
MARGIN = 2.0
"""Intervals are short, so a percentile of one scatters; what waits behind a flood takes a hundred times as long."""
IN_A_ROW = 3
"""So many intervals must be as they were: one alone may be by chance."""


def of(trial: Trial) -> LoadResult:
    """Summary of the flood's instrument; empty without a flood."""
    return LoadResult.model_validate(trial.record.instruments.get("flood", {}))


def goodput_percent(trial: Trial) -> float | None:
    """Share of the clients' queries due during the flood that were answered in time."""
    flood = of(trial)
    if not flood.ran:
        return None
    begin, rows = pl.col("start_ns"), trial.load_intervals
    during = rows.filter((begin >= flood.start_ns) & (begin + pl.col("duration_ns") <= flood.end_ns))
    due = int(during["due"].sum())
    return 100 * int(during["answered"].sum()) / due if due else None


def recovery_s(trial: Trial) -> float | None:
    """From the end of the flood to the first interval of `IN_A_ROW` in which the latency is what it was before."""
    flood, latency = of(trial), trial.latency
    if not flood.ran or latency is None:
        return None
    begins_s = (flood.start_ns - trial.load.start_ns) / 1e9
    return recovered_after_s(latency.intervals("due"), begins_s, begins_s + flood.span_s)


def recovered_after_s(intervals: list[Interval], begin_s: float, end_s: float) -> float | None:
    """``begin_s``, ``end_s``: of the flood, since the first interval.

    The latency is what it was where its 90th percentile is at most `MARGIN` times the longest of the second half of the
    time before the flood; the first half may have had a cold cache. None where it did not come back, or where nothing
    was measured before.
    """
    found = [
        (each.offset_s, each.offset_s + each.duration_s, each.histogram.percentile(PERCENTILE)) for each in intervals
    ]
    before = [ns for begin, end, ns in found if ns is not None and begin >= begin_s / 2 and end <= begin_s]
    after = [
        (begin, ns is not None and bool(before) and ns <= MARGIN * max(before))
        for begin, _, ns in found
        if begin >= end_s
    ]
    for first in range(len(after) - IN_A_ROW + 1):
        if all(good for _, good in after[first : first + IN_A_ROW]):
            return after[first][0] - end_s
    return None
