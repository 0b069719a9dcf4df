"""The first and the last minute of what a resolver was measured for: a cache is empty at first, and is not later.

Where `measure` is shorter than two minutes they are its halves.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from dnsrig.runs.during import growth_in
from dnsrig.runs.latency import Histogram, merge
from dnsrig.runs.trial import Trial

Which = Literal["first", "last"]
MINUTE_NS = 60_000_000_000


def stretch(trial: Trial, which: Which) -> tuple[int, int] | None:
    """From, to, in monotonic ns; None of a trial without a replay on a resolver."""
    if trial.load.model != "stream" or trial.record.spec.hosts[trial.subject].role != "resolver":
        return None
    rows = trial.load_intervals
    ends = (rows["start_ns"] + rows["duration_ns"]).to_list()
    if not ends:
        return None
    # `measure` is longer: it goes on until the last answer or time-out.
    begun_ns, end_ns = min(rows["start_ns"].to_list()), max(ends)
    length_ns = min(MINUTE_NS, (end_ns - begun_ns) // 2)
    return (begun_ns, begun_ns + length_ns) if which == "first" else (end_ns - length_ns, end_ns)


def latencies(trial: Trial, which: Which) -> Histogram | None:
    """From the due time; of the intervals whose middle lies in it."""
    found = stretch(trial, which)
    if found is None or trial.latency is None:
        return None
    begun_ns = stretch(trial, "first")[0]  # type: ignore[index]
    middles = (
        (begun_ns + (each.offset_s + each.duration_s / 2) * 1e9, each) for each in trial.latency.intervals("due")
    )
    chosen = merge(each.histogram for middle_ns, each in middles if found[0] <= middle_ns < found[1])
    return chosen if chosen.total else None


def growth_per_s(trial: Trial, which: Which, host: str, source: str, name: str) -> float | None:
    """Growth of a counter of `watch` a second in that minute."""
    found = stretch(trial, which)
    grown = None if found is None else growth_in(trial, (host, source, name), [found])
    return None if grown is None or found is None else grown / ((found[1] - found[0]) / 1e9)


def mean(trial: Trial, which: Which, source: str, *names: str) -> float | None:
    """Mean of the sum of gauges of the host under test; None without a sample of each."""
    found = stretch(trial, which)
    if found is None:
        return None
    means = [_mean(trial.series(trial.subject, source, name), found) for name in names]
    return None if None in means else sum(value for value in means if value is not None)


def _mean(rows: pl.DataFrame, found: tuple[int, int]) -> float | None:
    value = rows.filter(pl.col("time_ns").is_between(*found))["value"].mean()
    return float(value) if isinstance(value, int | float) else None
