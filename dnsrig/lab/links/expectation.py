"""What a test should find on a link that is as asked: the model of one direction in virtual time, drawn many times.
Pure.

Tolerances follow from it. The figures of a link are random, and those of a short test scatter: with ordered jitter even
the typical delay depends on how closely packets follow each other (as with netem's `rate`). So the schedule of the test
itself is put through the model, again and again, and what was found is held against the mean of that, give or take
`SPREAD` standard deviations and a slack for the machine.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dnsrig.rundir import PathSpec

SMALL_BYTES = 60
STEADY_S = 1.0
MOST_PER_S = 1000.0
LEAST_PER_S = 20.0
SHARE_OF_RATE = 0.2
SHARE_OF_LIMIT = 0.5
BURST_S = 0.4
"""How long a burst may take at the rate asked for."""
MOST_BURST_PACKETS = 2000
LEAST_BURST_PACKETS = 8

DRAWS = 60
"""So many tell a standard deviation to a tenth: the relative error is 1 / √(2 × (DRAWS - 1)) = 9 %, of normal
variates."""
SEED = 0
"""The draws never change: what is found is judged, not the model."""
SPREAD = 5.0
"""Standard deviations: a normal variate is so far away once in 1.7 million tests."""
SLACK_MS = 2.0
"""What the machine may add to a path. This and the other slacks are chosen, not measured: so far a path may be off
without being refused."""
TAIL_SLACK_MS = 5.0
"""A machine that was busy for a moment shows in the slowest packets first."""
SLACK_SHARE = 0.02
RATE_SLACK_SHARE = 0.05
LOSS_SLACK_PACKETS = 2
"""A busy machine may lose a few more than were asked for; never fewer."""
LOSS_ERROR = 2.9e-7
"""How likely a number of lost packets outside the interval is at most, at either end: what five standard deviations of
a normal variate are."""
SELDOM_OVERTAKEN_PACKETS = 5
"""Where no draw has fewer than these overtaken, none at all is a link that keeps order."""

Sent = Sequence[tuple[float, int]]
"""Seconds since the link began, bytes of the IP packet; in this order."""


@dataclass(frozen=True)
class Steady:
    """Small packets, evenly spaced: delay, jitter, loss, order."""

    packets: int
    interval_s: float
    nbytes: int = SMALL_BYTES


def steady(path: PathSpec) -> Steady:
    """One of a direction."""
    per_s = MOST_PER_S
    if path.rate_mbit is not None:
        per_s = min(per_s, SHARE_OF_RATE * path.rate_mbit * 1e6 / 8 / SMALL_BYTES)
    if longest_s := path.longest_ms / 1e3:
        per_s = min(per_s, SHARE_OF_LIMIT * path.limit_packets / longest_s)
    per_s = max(per_s, LEAST_PER_S)
    return Steady(int(per_s * STEADY_S), 1 / per_s)


def burst(path: PathSpec, interface_mtu_bytes: int) -> list[int]:
    """The sizes of the packets of a burst that shows the rate; empty where none was asked for. It fits into the
    queue."""
    if path.rate_mbit is None:
        return []
    size = path.mtu_bytes or interface_mtu_bytes
    wanted = math.ceil(path.rate_mbit * 1e6 / 8 * BURST_S / size)
    room = int(0.75 * path.limit_packets)
    return [size] * max(LEAST_BURST_PACKETS, min(wanted, room, MOST_BURST_PACKETS))


def longest_wait_s(path: PathSpec) -> float:
    """After which what has not arrived is lost."""
    slack_s = 0.1
    return path.longest_ms / 1e3 + slack_s


def burst_s(path: PathSpec, nbytes: list[int]) -> float:
    return sum(nbytes) * 8 / (path.rate_mbit * 1e6) if path.rate_mbit else 0.0


@dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high``, both in it."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Delays:
    """Delays of the packets of one test, in milliseconds."""

    p5_ms: float
    median_ms: float
    p95_ms: float


@dataclass(frozen=True)
class Expected:
    """In which intervals the figures of a direction lie that is as asked."""

    p5_ms: Interval
    median_ms: Interval
    p95_ms: Interval
    lost_packets: Interval
    overtaken_packets: int
    """Fewest of all draws."""


def arrivals(path: PathSpec, sent: Sent, dice: random.Random) -> list[float | None]:
    """When each packet arrives, in seconds like ``sent``; None: lost. A queue without end, no path MTU.

    With a rate and in order a packet is due at the later of its own delay and the due time of the packet ahead, plus
    its time on the wire; in order without a rate, not before the packet ahead. Free with a rate, it waits for the wire
    and then has its delay.
    """
    wire_free_s = last_s = -math.inf
    found: list[float | None] = []
    for sent_s, nbytes in sent:
        if dice.random() * 100 < path.loss_percent_at(sent_s):
            found.append(None)
            continue
        delay_s = (path.delay_ms + path.jitter_ms * dice.uniform(-1, 1)) / 1e3
        wire_s = nbytes * 8 / (path.rate_mbit * 1e6) if path.rate_mbit else 0.0
        if path.ordered:
            due_s = last_s = max(last_s, sent_s + delay_s) + wire_s
        else:
            wire_free_s = max(wire_free_s, sent_s) + wire_s
            due_s = wire_free_s + delay_s
        found.append(due_s)
    return found


def delays(sent: Sent, arrived: Sequence[float | None]) -> Delays | None:
    """None where fewer than two arrived."""
    each = sorted((there - here) * 1e3 for (here, _), there in zip(sent, arrived) if there is not None)
    if len(each) < 2:
        return None
    return Delays(each[len(each) // 20], statistics.median(each), each[-1 - len(each) // 20])


def overtaken(arrived: Sequence[float | None]) -> int:
    """How many arrived later than one that was sent after them; of the packets next to each other in the order of
    arrival."""
    came = sorted((time_s, number) for number, time_s in enumerate(arrived) if time_s is not None)
    return sum(one > other for (_, one), (_, other) in itertools.pairwise(came))


def lost_packets(chances: Sequence[float]) -> Interval:
    """How many of packets are lost that are lost with these probabilities, each for itself.

    Hoeffding's bound (1963, theorem 1) for the sum of independent variates: so many or more (or fewer) are less likely
    than exp(-n × the relative entropy of found and expected share). It holds for few and seldom losses too, where the
    binomial distribution is far from normal: five of its standard deviations would let a link without any loss pass for
    one of 2 %.
    """
    count, mean = len(chances), math.fsum(chances)
    if mean == 0 or mean == count:
        return Interval(mean, mean)
    within = [
        lost for lost in range(count + 1) if count * _entropy(lost / count, mean / count) <= -math.log(LOSS_ERROR)
    ]
    return Interval(within[0], min(count, within[-1] + LOSS_SLACK_PACKETS))


def _entropy(found: float, expected: float) -> float:
    """Relative entropy (Kullback and Leibler) of two shares."""
    pairs = ((found, expected), (1 - found, 1 - expected))
    return sum(one * math.log(one / other) for one, other in pairs if one > 0)


def rate_mbit(nbytes: Sequence[int], arrived: Sequence[float | None]) -> float | None:
    """Measure the rate of a burst by its second half; the first half may wait for jitter.

    None where too little arrived, or all at once.
    """
    came = sorted((time, size) for time, size in zip(arrived, nbytes) if time is not None)
    late = came[len(came) // 2 :]
    if len(late) < 2 or late[-1][0] <= late[0][0]:
        return None
    return sum(size for _, size in late[1:]) * 8 / (late[-1][0] - late[0][0]) / 1e6


def expected(path: PathSpec, sent: Sent, *, tick_s: float = 0.0) -> Expected:
    """For a test that sends ``sent``, spaced so that they do not fill the queue. ``tick_s``: how coarse the kernel's
    timers are."""
    tick_ms = tick_s * 1e3
    dice = random.Random(SEED)
    draws = [arrivals(path, sent, dice) for _ in range(DRAWS)]
    drawn = [found for one in draws if (found := delays(sent, one))]
    return Expected(
        p5_ms=_interval([one.p5_ms for one in drawn], SLACK_MS + tick_ms),
        median_ms=_interval([one.median_ms for one in drawn], SLACK_MS + tick_ms),
        p95_ms=_interval([one.p95_ms for one in drawn], TAIL_SLACK_MS + tick_ms),
        lost_packets=lost_packets([path.loss_percent_at(time_s) / 100 for time_s, _ in sent]),
        overtaken_packets=0 if path.ordered or not path.jitter_ms else min(map(overtaken, draws)),
    )


def expected_rate_mbit(path: PathSpec, nbytes: Sequence[int], at_s: float, *, tick_s: float = 0.0) -> Interval | None:
    """For a burst of such packets, all sent at once ``at_s`` since the link began.

    None if a link as asked may lose too many of them to know a rate. With coarse timers packets come in
    clumps, so the time of the half that counts is known to a tick only.
    """
    assert path.rate_mbit is not None
    half_s = sum(nbytes) * 8 / (path.rate_mbit * 1e6) / 2
    share = RATE_SLACK_SHARE + tick_s / half_s
    dice = random.Random(SEED)
    sent = [(at_s, size) for size in nbytes]
    drawn = [rate_mbit(nbytes, arrivals(path, sent, dice)) for _ in range(DRAWS)]
    known = [found for found in drawn if found is not None]
    if len(known) < DRAWS:
        return None
    mean, around = _moments(known)
    return Interval(mean - around - share * mean, mean + around + share * mean)


def _interval(values: Sequence[float], slack_ms: float) -> Interval:
    mean, around = _moments(values)
    return Interval(mean - around - slack_ms - SLACK_SHARE * mean, mean + around + slack_ms + SLACK_SHARE * mean)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and so many standard deviations; without values nothing is expected."""
    if len(values) < 2:
        return math.nan, math.nan
    return statistics.fmean(values), SPREAD * statistics.stdev(values)
