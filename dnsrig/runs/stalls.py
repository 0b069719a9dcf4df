"""When the whole server answered nothing: pure functions over answers.arrow.

A stall is a time without any answer, to whichever client, that chance does not explain. It lasts `SHORTEST_NS` and
`MEAN_GAPS` times as long as two answers lie apart in the mean (of a Poisson process one in e^20 such times is as long),
and the instrument went on asking: at least `FEWEST_ASKED` queries could have been answered in its first half, and had
the other half, too. They could be when they are as old as the quick answers of the trial: over a long path none comes
at once.

Its chance: had each of these n queries been slow for a reason of its own, as often as any query of this trial waited so
long or was never answered (a share q, the stalls' own victims included, so rather too large), none would be answered
with q^n. That times the number of such halves in the trial is at least the probability that one of them is a stall by
chance (Bonferroni).

An event precedes a stall if it lies within a window before it. The share of time that lies within a window after an
event of a kind is the probability that a stall that has nothing to do with these events has one before it. So the
number of stalls that have one is compared with the binomial distribution. Frequent events precede everything and prove
nothing; p is corrected for kinds and windows.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from dnsrig.runs.during import Stretch, outside
from dnsrig.runs.latency import Histogram
from dnsrig.runs.trial import Trial

SHORTEST_NS = 50_000_000
"""What a machine that is not set up for real time takes from a program now and then is shorter."""
MEAN_GAPS = 20
ROUND_TRIPS = 2
"""Over connections a stall lasts at least this number of quick answers. A new connection carries a window in each round
trip, and a lost packet delays what is behind it by a round trip or more (RFC 5681; RFC 9002): with few connections over
a long path all may wait at the same time, whatever the server does."""
FEWEST_ASKED = 10
QUICK_PERCENT = 10
"""Share of the answers that came as soon as they can, also if the server stalled for most of the time."""
ALPHA = 0.001
"""The probability that a trial has a stall by chance: a run has dozens of trials."""


@dataclass(frozen=True)
class Stall:
    """From the last answer before it to the first after it, in monotonic ns."""

    start_ns: int
    end_ns: int
    asked: int
    """Queries sent meanwhile."""
    chance: float
    """At most the probability that the trial has such a stall by chance."""
    ended: bool = True
    """False: the server had not answered again when the last query was sent."""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Stalls:
    """The stalls of one trial."""

    found: list[Stall] = field(default_factory=list)
    """In the order of time."""
    start_ns: int = 0
    end_ns: int = 0
    """When the first and the last of all queries were sent."""
    threshold_ns: int = SHORTEST_NS
    """So long a stall is at least, at this rate."""

    @property
    def span_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def stretches(self) -> list[Stretch]:
        return [(stall.start_ns, stall.end_ns) for stall in self.found]

    @property
    def others(self) -> list[Stretch]:
        """The rest of the time in which queries were sent."""
        return outside(self.stretches, (self.start_ns, self.end_ns))

    @property
    def total_ns(self) -> int:
        return sum(stall.duration_ns for stall in self.found)

    @property
    def longest_ns(self) -> int:
        return max((stall.duration_ns for stall in self.found), default=0)

    @property
    def share(self) -> float:
        return self.total_ns / self.span_ns if self.span_ns else 0.0

    @property
    def chance(self) -> float:
        return max((stall.chance for stall in self.found), default=0.0)


def stalls_of(trial: Trial) -> Stalls | None:
    """None where it was not recorded, or where nothing was answered at all."""
    latency = trial.latency
    if latency is None:
        return None
    return stalls(trial.answers, latency.total("sent"), int((trial.load.handshake_ns or {}).get("p50") or 0))


def stacks_of(trial: Trial, found: Stalls) -> tuple[Counter[str], Counter[str]]:
    """The CPU stacks sampled during the stalls, and those sampled in the rest of the time in which queries were
    sent."""
    rows = trial.timed_stacks
    during, rest = (rows.filter(_within(stretches))["stack"].to_list() for stretches in (found.stretches, found.others))
    return Counter(during), Counter(rest)


def _within(stretches: list[Stretch]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(False), *(pl.col("time_ns").is_between(*stretch) for stretch in stretches))


def stalls(rows: pl.DataFrame, waits: Histogram, handshake_ns: int = 0) -> Stalls | None:
    """``rows``: the rows of answers.arrow; ``waits``: of all queries from sending, queries without an answer at the
    client's timeout; ``handshake_ns``: how long the first queries wait for their connections."""
    sent = rows.filter(pl.col("sent") > 0).sort("time_ns")
    answered = rows.filter(pl.col("answered") > 0).sort("time_ns")
    if sent.height < 2 or answered.is_empty() or not waits.total:
        return None
    bins = _Bins(sent["time_ns"].to_list(), sent["sent"].to_list())
    span_ns = bins.end_ns - bins.start_ns
    quick_ns = waits.percentile(QUICK_PERCENT) or 0
    in_connections_ns = ROUND_TRIPS * quick_ns if handshake_ns else 0
    threshold_ns = max(SHORTEST_NS, in_connections_ns, MEAN_GAPS * span_ns // int(answered["answered"].sum()))
    found = []
    for start_ns, end_ns in _gaps(answered, bins, threshold_ns, quick_ns, handshake_ns):
        half_ns = (end_ns - start_ns) // 2
        asked = bins.sent_within(start_ns - quick_ns, start_ns + half_ns - quick_ns)
        chance = chance_of(asked, _share_above(waits, quick_ns + half_ns), span_ns / half_ns)
        if asked >= FEWEST_ASKED and chance <= ALPHA:
            found.append(
                Stall(start_ns, end_ns, bins.sent_within(start_ns, end_ns), chance, ended=end_ns < bins.end_ns)
            )
    return Stalls(found, bins.start_ns, bins.end_ns, threshold_ns)


def chance_of(asked: int, share: float, places: float) -> float:
    """Probability that at one of ``places`` none of ``asked`` queries is answered in time, each slow by itself with
    probability ``share``.

    >>> chance_of(10, 0.5, 512)
    0.5
    """
    return min(1.0, places * share**asked) if share > 0 else 0.0


def _gaps(
    answered: pl.DataFrame, bins: _Bins, threshold_ns: int, quick_ns: int, handshake_ns: int
) -> list[tuple[int, int]]:
    """Times without an answer of ``threshold_ns`` or more, while queries were sent. The first begins when an answer
    could be there."""
    firsts, lasts = answered["first_ns"].to_list(), answered["last_ns"].to_list()
    edges = zip([bins.start_ns + handshake_ns + quick_ns, *lasts], [*firsts, bins.end_ns])
    return [(start, end) for start, end in edges if end - start >= threshold_ns]


def _share_above(waits: Histogram, limit_ns: int) -> float:
    """Share of all queries that waited longer, or as long as the client does."""
    longest = waits.max_ns or 0
    slow = sum(count for value, count in zip(waits.values_ns, waits.counts) if value >= min(limit_ns, longest))
    return slow / waits.total


@dataclass(frozen=True)
class _Bins:
    """The bins in which queries were sent."""

    times_ns: list[int]
    sent: list[int]

    @property
    def bin_ns(self) -> int:
        """Bins have one length, and some lie side by side."""
        return min(later - earlier for earlier, later in zip(self.times_ns, self.times_ns[1:]))

    @property
    def start_ns(self) -> int:
        return self.times_ns[0]

    @property
    def end_ns(self) -> int:
        return self.times_ns[-1] + self.bin_ns

    def sent_within(self, start_ns: int, end_ns: int) -> int:
        """Only of bins that lie in it whole, so rather too few."""
        length = self.bin_ns
        return sum(n for time, n in zip(self.times_ns, self.sent) if time >= start_ns and time + length <= end_ns)


WINDOWS_NS = (10_000_000, 100_000_000, 1_000_000_000)
LATE_NS = 20_000_000
"""Largest delay between an event and its line in the log, whose clock may be coarse."""
PRECEDING_P_MAX = 0.05


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
    return best if best is not None and best.p <= PRECEDING_P_MAX else None


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
    """Share of the time in ``free`` that lies in ``stretches``, which are in the order of their starts."""
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
