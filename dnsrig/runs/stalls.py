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
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import polars as pl

from dnsrig.runs.during import Stretch, outside
from dnsrig.runs.latency import Histogram
from dnsrig.runs.trial import Trial

SHORTEST_NS = 50_000_000
"""What a machine that is not set up for real time takes from a program now and then is shorter."""
MEAN_GAPS = 20
FEWEST_ASKED = 10
QUICK_PERCENT = 10
"""Of the answers, those that came as soon as they can: also where the server stood still for most of the time."""
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
    """Of one trial."""

    found: list[Stall] = field(default_factory=list)
    """In the order of time."""
    start_ns: int = 0
    end_ns: int = 0
    """Of all queries: when the first was sent, and the last."""
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
    return None if latency is None else stalls(trial.answers, latency.total("sent"))


def stacks_of(trial: Trial, found: Stalls) -> tuple[Counter[str], Counter[str]]:
    """The CPU stacks sampled during the stalls, and those sampled in the rest of the time in which queries were
    sent."""
    rows = trial.timed_stacks
    during, rest = (rows.filter(_within(stretches))["stack"].to_list() for stretches in (found.stretches, found.others))
    return Counter(during), Counter(rest)


def _within(stretches: list[Stretch]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(False), *(pl.col("time_ns").is_between(*stretch) for stretch in stretches))


def stalls(rows: pl.DataFrame, waits: Histogram) -> Stalls | None:
    """``rows``: those of answers.arrow; ``waits``: of all queries from sending, those without an answer at the client's
    timeout."""
    sent = rows.filter(pl.col("sent") > 0).sort("time_ns")
    answered = rows.filter(pl.col("answered") > 0).sort("time_ns")
    if sent.height < 2 or answered.is_empty() or not waits.total:
        return None
    bins = _Bins(sent["time_ns"].to_list(), sent["sent"].to_list())
    span_ns = bins.end_ns - bins.start_ns
    threshold_ns = max(SHORTEST_NS, MEAN_GAPS * span_ns // int(answered["answered"].sum()))
    found = []
    quick_ns = waits.percentile(QUICK_PERCENT) or 0
    for start_ns, end_ns in _gaps(answered, bins, threshold_ns, quick_ns):
        half_ns = (end_ns - start_ns) // 2
        asked = bins.sent_within(start_ns - quick_ns, start_ns + half_ns - quick_ns)
        chance = chance_of(asked, _share_above(waits, quick_ns + half_ns), span_ns / half_ns)
        if asked >= FEWEST_ASKED and chance <= ALPHA:
            found.append(
                Stall(start_ns, end_ns, bins.sent_within(start_ns, end_ns), chance, ended=end_ns < bins.end_ns)
            )
    return Stalls(found, bins.start_ns, bins.end_ns, threshold_ns)


def chance_of(asked: int, share: float, places: float) -> float:
    """That at one of ``places`` none of ``asked`` queries is answered in time, each slow by itself with probability
    ``share``.

    >>> chance_of(10, 0.1, 1_000)
    1e-07
    """
    return min(1.0, places * share**asked) if share > 0 else 0.0


def _gaps(answered: pl.DataFrame, bins: _Bins, threshold_ns: int, quick_ns: int) -> list[tuple[int, int]]:
    """Times without an answer of ``threshold_ns`` or more, while queries were sent. The first begins when an answer
    could be there."""
    firsts, lasts = answered["first_ns"].to_list(), answered["last_ns"].to_list()
    edges = zip([bins.start_ns + quick_ns, *lasts], [*firsts, bins.end_ns])
    return [(start, end) for start, end in edges if end - start >= threshold_ns]


def _share_above(waits: Histogram, limit_ns: int) -> float:
    """Of all queries, those that waited longer, or as long as the client does."""
    longest = waits.max_ns or 0
    slow = sum(count for value, count in zip(waits.values_ns, waits.counts) if value >= min(limit_ns, longest))
    return slow / waits.total


@dataclass(frozen=True)
class _Bins:
    """Of queries sent, those in which there are any."""

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
