"""Which clients were late together, and whether that can be chance: pure functions over clients.arrow.

A client is late in a window when one of its queries waited for ten times as long as a client's longest wait usually is,
and for a tenth of the longest: what the scheduler does to others beside a pause of 200 ms takes a few, now and then. A
window is two adjacent intervals, so that a pause across their border is whole in one. Only windows count in which
every client sent often enough to have met a pause of the whole server, if it was one.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import polars as pl

FEWEST_CLIENTS = 16
FEWEST_WINDOWS = 3
"""Fewest windows with late clients: with fewer there is nothing to compare."""
LATE_RATIO = 10
"""Ratio of a client's longest wait in an interval, and of the longest of all, to the lower quartile of all."""
SMALLEST_WAIT_NS = 1_000_000
"""A shorter wait is never late: the scheduler gives such ones to anybody."""
WINDOWS_MAX = 20
"""Windows that are compared, the latest of all; their pairs grow with the square."""
PERMUTATIONS = 999
"""So the smallest p is 0.001."""
ENOUGH_EXTREMES = 20
"""Permutations as extreme as what was seen, after which p is known to be above a hundredth, and no better is needed."""
SAME_DEVIATIONS = 2.0
"""Standard deviations of the overlap above expectation from which two windows count as of one group."""
SEED = 1


@dataclass
class Windows:
    """Late clients per window."""

    clients: int
    count: int
    """Number of windows examined, with or without late clients."""
    late: list[int] = field(default_factory=list)
    """A set of clients as bits, for each window that separates late clients from others; in the order of time."""
    waits_ns: list[list[int]] = field(default_factory=list)
    """The longest wait of each client, in the order of its bit."""
    queries: list[list[int]] = field(default_factory=list)
    """The number of queries of each client."""
    late_rows: bool = False
    """Whether any client was late in any interval."""
    sparse: bool = False
    """Whether a window with late clients was left out, as the clients sent too seldom."""


@dataclass(frozen=True)
class Group:
    """Clients that were late together."""

    clients: list[int]
    """Bit numbers."""
    of: int
    """Clients in all."""
    windows: int
    groups: int
    """Such groups found, this the one seen in most windows."""
    p: float
    late_ns: int
    """The median over its windows of the longest wait of its clients."""
    others_ns: int
    """The median over its windows of the longest wait of the median one of all other clients."""
    query_share: float
    """Share of the queries in its windows that its clients sent."""

    @property
    def share(self) -> float:
        return len(self.clients) / self.of

    @property
    def threads(self) -> int:
        return max(2, round(1 / self.share))

    @property
    def threads_range(self) -> tuple[int, int]:
        """By the 95 % interval of Wilson (1927) of the share: the kernel's hash deals clients out like coins."""
        z, n, share = 1.96, self.of, self.share
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(2, math.floor(1 / (middle + half))), max(2, math.ceil(1 / max(middle - half, 1 / (4 * n))))


@dataclass(frozen=True)
class _Grid:
    """clients.arrow by interval and client; zero where a client asked nothing."""

    starts_ns: list[int]
    clients: int
    waits_ns: dict[int, list[int]]
    """Start of an interval -> the longest wait of each client."""
    queries: dict[int, list[int]]
    threshold_ns: float
    """From which a wait is late."""

    def longest_ns(self, start_ns: int) -> int:
        return max(self.waits_ns[start_ns])


def windows_of(rows: pl.DataFrame) -> Windows | None:
    """``rows``: the rows of clients.arrow. None without a query in them."""
    grid = _grid(rows)
    if grid is None:
        return None
    found = Windows(grid.clients, len(grid.starts_ns) // 2)
    found.late_rows = any(grid.longest_ns(start) >= grid.threshold_ns for start in grid.starts_ns)
    for pair in _telling_pairs(grid):
        waits_ns = [max(both) for both in zip(*(grid.waits_ns[start] for start in pair))]
        queries = [sum(both) for both in zip(*(grid.queries[start] for start in pair))]
        spacing_ns = 2 * (pair[1] - pair[0]) / max(1, statistics.median_low(queries))
        late_ns = max(grid.threshold_ns, grid.longest_ns(pair[0]) / LATE_RATIO)
        mask = _bits(bit for bit, wait_ns in enumerate(waits_ns) if wait_ns >= late_ns)
        if grid.longest_ns(pair[0]) < 2 * spacing_ns:
            found.sparse = True
        elif mask.bit_count() < grid.clients:
            found.late.append(mask)
            found.waits_ns.append(waits_ns)
            found.queries.append(queries)
    return found


def _telling_pairs(grid: _Grid) -> Iterator[tuple[int, int]]:
    """Starts of adjacent intervals, none of them in two pairs, the first with a wait so long that half of it is late,
    too.

    Of a pause of the whole server that is twice as long as a client's queries lie apart, each client then has a late
    one. The last interval begins no pair: of a pause that goes on after it only some clients would be late.
    """
    number = 0
    while number < len(grid.starts_ns) - 1:
        start, following = grid.starts_ns[number : number + 2]
        if grid.longest_ns(start) >= 2 * grid.threshold_ns:
            yield start, following
            number += 1
        number += 1


def _grid(rows: pl.DataFrame) -> _Grid | None:
    asked = rows.with_columns((pl.col("answered") + pl.col("unanswered")).alias("queries")).filter(
        pl.col("queries") > 0
    )
    if asked.is_empty():
        return None
    starts, names = (asked[column].unique().sort().to_list() for column in ("start_ns", "client"))
    bits = {name: bit for bit, name in enumerate(names)}
    waits, queries = ({start: [0] * len(names) for start in starts} for _ in range(2))
    for start, client, wait_ns, count in asked.select("start_ns", "client", "max_ns", "queries").iter_rows():
        waits[start][bits[client]], queries[start][bits[client]] = wait_ns, count
    of_intervals = asked.group_by("start_ns").agg(pl.col("max_ns").quantile(0.25, "lower"))["max_ns"]
    usual_ns = statistics.median(of_intervals.to_list())
    return _Grid(starts, len(names), waits, queries, max(SMALLEST_WAIT_NS, LATE_RATIO * usual_ns))


def late_together(windows: Windows) -> Group | None:
    """The group of clients that was late together in most windows, with the p of all windows; None without windows to
    compare."""
    if len(windows.late) < FEWEST_WINDOWS:
        return None
    order = sorted(range(len(windows.late)), key=lambda index: max(windows.waits_ns[index]), reverse=True)[:WINDOWS_MAX]
    masks, n = [windows.late[index] for index in order], windows.clients
    groups = _groups(masks, n)
    largest = max(groups, key=len)
    members = _members([masks[index] for index in largest], n)
    if len(largest) < FEWEST_WINDOWS or not members:
        return None
    chosen, inside = [order[index] for index in largest], set(members)
    outside = [bit for bit in range(n) if bit not in inside]
    late_ns = statistics.median_low(max(windows.waits_ns[w][bit] for bit in members) for w in chosen)
    others = [statistics.median_low(windows.waits_ns[w][bit] for bit in outside) for w in chosen] if outside else [0]
    of_members = sum(windows.queries[w][bit] for w in chosen for bit in members)
    return Group(
        clients=members,
        of=n,
        windows=len(largest),
        groups=sum(len(group) >= FEWEST_WINDOWS for group in groups),
        p=chance_of(masks, n),
        late_ns=late_ns,
        others_ns=statistics.median_low(others),
        query_share=of_members / max(1, sum(sum(windows.queries[w]) for w in chosen)),
    )


def chance_of(masks: Sequence[int], clients: int) -> float:
    """p of overlaps as far from expectation, if each window picked its late clients by chance, as many as it has.

    A Monte Carlo permutation test (Dwass 1957, Davison and Hinkley 1997, section 4.2: the data count as one
    permutation), seeded.
    """
    sizes, noise, extreme = [mask.bit_count() for mask in masks], random.Random(SEED), 0
    pairs = [
        (one, other, *_overlap(sizes[one], sizes[other], clients)) for one, other in combinations(range(len(masks)), 2)
    ]
    telling = [pair for pair in pairs if pair[3] > 0]
    seen = _deviation(masks, telling)
    for done in range(1, PERMUTATIONS + 1):
        drawn = [_bits(noise.sample(range(clients), size)) for size in sizes]
        extreme += _deviation(drawn, telling) >= seen - 1e-9
        if extreme >= ENOUGH_EXTREMES:
            return (extreme + 1) / (done + 1)
    return (extreme + 1) / (PERMUTATIONS + 1)


def _deviation(masks: Sequence[int], pairs: Sequence[tuple[int, int, float, float]]) -> float:
    """The sum over pairs of the squared deviation of their overlap, in variances. ``pairs``: two windows, mean,
    variance."""
    return sum(
        ((masks[one] & masks[other]).bit_count() - expected) ** 2 / variance for one, other, expected, variance in pairs
    )


def _overlap(one: int, other: int, clients: int) -> tuple[float, float]:
    """Mean and variance of the overlap of two random sets of such sizes: the hypergeometric distribution."""
    expected = one * other / clients
    return expected, expected * (clients - one) * (clients - other) / (clients * (clients - 1)) if clients > 1 else 0.0


def _groups(masks: Sequence[int], clients: int) -> list[list[int]]:
    """Windows whose late clients are more alike than chance lets expect, gathered step by step."""
    groups: list[list[int]] = []
    for index, mask in enumerate(masks):
        joined = next((group for group in groups if _alike(mask, masks[group[0]], clients)), None)
        if joined is None:
            groups.append([index])
        else:
            joined.append(index)
    return groups


def _alike(one: int, other: int, clients: int) -> bool:
    expected, variance = _overlap(one.bit_count(), other.bit_count(), clients)
    return (one & other).bit_count() > expected + SAME_DEVIATIONS * math.sqrt(variance)


def _members(masks: Sequence[int], clients: int) -> list[int]:
    """The clients late in at least half as many of these windows as a late client typically is."""
    times = [sum(mask >> bit & 1 for mask in masks) for bit in range(clients)]
    typical = sum(count * count for count in times) / max(1, sum(times))
    return [bit for bit, count in enumerate(times) if count and count >= typical / 2]


def _bits(members: Iterable[int]) -> int:
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask
