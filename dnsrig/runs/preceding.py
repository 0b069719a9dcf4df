"""Which kind of event comes just before something: more often than events that know nothing of it would. Pure functions
over times.

An event precedes a moment if it lies within a window before it. Of each window it is known which share of the time is
within it of an event of that kind: with such a probability a moment that has nothing to do with them has one before it.
So the number of moments that have one is held against the binomial distribution. Frequent events precede everything,
and prove nothing; the p corrects for kinds and windows.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WINDOWS_NS = (10_000_000, 100_000_000, 1_000_000_000)
LATE_NS = 20_000_000
"""A log may be written, and its clock may tick, so much after what it tells of began."""
ALPHA = 0.05


@dataclass(frozen=True)
class Preceding:
    kind: str
    events: int
    before: int
    """Moments with such an event in the window before them …"""
    moments: int
    """… of so many."""
    window_ns: int
    delay_ns: int
    """From the event to the moment, in the median of those; negative: the event was noted after it."""
    p: float


def preceding(
    moments_ns: Sequence[int], events_ns: Mapping[str, Sequence[int]], free: Sequence[tuple[int, int]]
) -> Preceding | None:
    """The kind that stands out most; None where none does. ``free``: the stretches of time in which a moment could
    lie."""
    kinds = {kind: sorted(times) for kind, times in events_ns.items() if times}
    found = [
        _judged(kind, times, moments_ns, window_ns, free, trials=len(kinds) * len(WINDOWS_NS))
        for kind, times in kinds.items()
        for window_ns in WINDOWS_NS
    ]
    best = min((each for each in found if each.before), key=lambda each: (each.p, each.window_ns), default=None)
    return best if best is not None and best.p <= ALPHA else None


def _judged(
    kind: str,
    times: Sequence[int],
    moments_ns: Sequence[int],
    window_ns: int,
    free: Sequence[tuple[int, int]],
    *,
    trials: int,
) -> Preceding:
    delays = [delay for moment in moments_ns if (delay := _delay(times, moment)) is not None and delay <= window_ns]
    share = covered_share([(time - LATE_NS, time + window_ns) for time in times], free)
    p = min(1.0, trials * at_least(len(delays), len(moments_ns), share))
    return Preceding(
        kind, len(times), len(delays), len(moments_ns), window_ns, int(statistics.median(delays or [0])), p
    )


def _delay(times: Sequence[int], moment_ns: int) -> int | None:
    """From the last event before the moment, or noted a little after it."""
    place = bisect.bisect_right(times, moment_ns + LATE_NS)
    return moment_ns - times[place - 1] if place else None


def covered_share(stretches: Sequence[tuple[int, int]], free: Sequence[tuple[int, int]]) -> float:
    """Of the time in ``free``, that in any of ``stretches``, which are in the order of their starts."""
    covered, reached = 0, min((start for start, _ in stretches), default=0)
    for start, end in stretches:
        begin = max(start, reached)
        covered += sum(max(0, min(end, last) - max(begin, first)) for first, last in free if begin < end)
        reached = max(reached, end)
    whole = sum(last - first for first, last in free)
    return covered / whole if whole else 1.0


def at_least(count: int, of: int, probability: float) -> float:
    """That ``count`` or more of ``of`` independent trials succeed.

    >>> round(at_least(3, 3, 0.1), 6)
    0.001
    """
    return math.fsum(math.comb(of, k) * probability**k * (1 - probability) ** (of - k) for k in range(count, of + 1))
