"""Records expire together, and the resolver requests all of them again at once, over and over.

Records that enter an empty cache in the first second leave it one TTL later, if all have the same TTL. So upstream
queries and latency have peaks with that period, and a mean over both mixes two states. On the Internet TTLs differ and
clients have been asking for hours: such peaks are an effect of the experiment.

How it is detected: from the upstream queries of each second. The trap looks for a period in which the same second
stands out each time, in all whole periods except the first, in which an empty cache fills. At least three more periods
are needed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import polars as pl

from dnsrig.runs import upstream
from dnsrig.runs.row_files.world import QUERIES
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 62
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "TTLs expire together"
SOURCE = "RFC 2181, 8: a TTL is how long a record may be kept; RFC 1034, 3.6: it is the same for all who ask"
SHORTEST_S = 4
"""Shortest period: shorter ones have too few seconds to compare the peak with."""
PERIODS = 3
"""Least number of whole periods besides the first."""
TIMES = 2.0
"""Least ratio of the queries in the peak to the median second of its period."""
DEVIATIONS = 5
"""Standard deviations (Poisson) by which the number of queries in all peaks must exceed its expected value."""


@dataclass(frozen=True)
class Peaks:
    period_s: int
    times: float
    """Ratio of the lowest peak to the median second of its period."""
    share: float
    """Share of all queries that are in the peaks."""
    count: int


def after(trial: Trial) -> Conclusion | None:
    spec = trial.record.spec
    if trial.load.model != "stream" or spec.world is None:
        return None
    if spec.hosts[trial.subject].resolving is None:
        return None
    seconds = seconds_of(trial)
    if len(seconds) < (PERIODS + 1) * SHORTEST_S:
        return cannot_tell(f"{len(seconds)} whole seconds are too few to see {PERIODS + 1} periods of {SHORTEST_S} s.")
    peaks = peaks_of(seconds)
    if peaks is None:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"Every {peaks.period_s} s the resolver sends at least {digits(peaks.times, 2)} times as many queries as in between: {peaks.share:.0%} of "
        f"them in {peaks.count} single seconds. Records seem to expire together.",
        evidence={
            "period_s": peaks.period_s,
            "peaks": peaks.count,
            "lowest_peak_times": round(peaks.times, 2),
            "in_peaks_percent": round(100 * peaks.share, 1),
        },
        series=(QUERIES.name,),
        metrics=(spec.main_metric, "upstream_a_query", "p99_ms"),
        remedy="Keep the random TTLs (no `ttls.hosts_s` in `dataset.set`), or measure for many TTLs after a warm-up of several TTLs.",
    )


def seconds_of(trial: Trial) -> list[int]:
    """Upstream queries in each whole second of `measure` except the first, in which an empty cache fills."""
    rows = upstream.queries(trial).group_by("time_ns").agg(pl.col("queries").sum())
    if rows.is_empty():
        return []
    queries = {round(time_ns / 1e9): int(count) for time_ns, count in rows.iter_rows()}
    # The counts are by seconds of another clock: the first and the last of them are parts.
    return [queries.get(second, 0) for second in range(min(queries) + 2, max(queries))]


def peaks_of(seconds: Sequence[int]) -> Peaks | None:
    """The shortest period in which the same second stands out each time."""
    for period in range(SHORTEST_S, len(seconds) // (PERIODS + 1) + 1):
        for phase in range(period):
            if (peaks := peaks_at(seconds, period, phase)) is not None:
                return peaks
    return None


def peaks_at(seconds: Sequence[int], period: int, phase: int) -> Peaks | None:
    """The peaks, if the second ``phase`` is the peak of every whole period but the first, counted from the end."""
    starts = range(len(seconds) % period + period, len(seconds), period)
    whole = [seconds[start : start + period] for start in starts]
    peaks = [one[phase] for one in whole]
    usual = [statistics.median(value for number, value in enumerate(one) if number != phase) for one in whole]
    by_chance = max(1.0, sum(usual))
    if any(peak < TIMES * beside for peak, beside in zip(peaks, usual)):
        return None
    if sum(peaks) <= by_chance + DEVIATIONS * sqrt(by_chance):
        return None
    times = min(peak / max(1, beside) for peak, beside in zip(peaks, usual))
    return Peaks(period, times, sum(peaks) / sum(map(sum, whole)), len(peaks))
