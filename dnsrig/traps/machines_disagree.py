"""On one machine this variant is the faster, on another the other one.

Machines of one model differ in what they can, and a ratio to the same machine's baseline leaves that out. But where the
order of two variants depends on the machine, no ratio holds for all of them: what the run says as a whole depends on
how many machines of which kind it had.

Looked at is the logarithm of the ratio of two variants in each round, for each variant and its baseline, or for all
pairs where there is none. A pair's order is reversed by as much as the smaller of the largest mean of a machine and the
negative of the smallest, in units of the spread over all rounds. The largest reversal of all pairs is held against
those that come about when whole rounds are dealt out to the machines in all other ways, or in many at random: a round
is a block, so where machines agree, any round could have been measured on any of them.

A run whose machines agree is found in at most 5 % of cases, and in fewer, as either side must also lie three standard
errors of its own machine's rounds away from none. Where ratios differ and no order does, that alone holds: a pair that
is equal on one machine, and is not on the others, is found in about 2 % of cases with five rounds a machine, in 5 %
with three. It supposes that rounds scatter alike on all machines.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dnsrig.analysis.read import Run
from dnsrig.analysis.statistics import ALPHA
from dnsrig.analysis.summary import baseline_among, describe, done_values, main_metric
from dnsrig.rundir import Variant
from dnsrig.text import digits
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 65
TITLE = "machines disagree on the order of variants"
SOURCE = "A. Maricq et al., Taming Performance Variability (OSDI 2018): servers of one type differ; Gail and Simon (1985): interactions that reverse"
MOST_DEALT = 2_000
"""Ways to deal out the rounds; of more, so many are drawn."""
STANDARD_ERRORS = 3
"""Of the mean of a machine's rounds."""
FEWEST_ROUNDS = 2
"""On each machine: of one there is no spread."""
MOST_PAIRS = 200
"""Of variants, the first of the matrix: 2,000 ways take 1.5 s."""

Rounds = dict[int, dict[str, float]]
"""Repeat -> variant -> logarithm of its value."""
Groups = Sequence[Sequence[int]]
"""Of each machine its rounds."""


@dataclass(frozen=True)
class Pair:
    """Two variants of which the second is the baseline, or comes later in the matrix."""

    variant: Variant
    other: Variant
    logs: dict[int, float]
    """Round -> logarithm of the ratio."""

    @cached_property
    def spread(self) -> float:
        return statistics.pstdev(self.logs.values())

    def means(self, groups: Groups) -> list[float]:
        return [sum(self.logs[round_] for round_ in rounds) / len(rounds) for rounds in groups]

    def stands_apart(self, rounds: Sequence[int]) -> bool:
        """Whether the mean of a machine's rounds lies ``STANDARD_ERRORS`` or more away from no difference."""
        logs = [self.logs[round_] for round_ in rounds]
        return abs(statistics.fmean(logs)) >= STANDARD_ERRORS * statistics.stdev(logs) / math.sqrt(len(logs))


def across(run: Run) -> Iterator[tuple[str | None, Conclusion]]:
    """Nothing of a run on one machine, or of a single variant."""
    if len(run.manifest.machines) < 2 or len(run.manifest.variants) < 2:
        return
    rounds = _complete(run)
    by_machine = {
        machine.name: [r for r in rounds if run.manifest.machine_of(r) == machine] for machine in run.manifest.machines
    }
    measured = {name: found for name, found in by_machine.items() if len(found) >= FEWEST_ROUNDS}
    pairs = list(itertools.islice(_pairs(run, rounds), MOST_PAIRS))
    sizes = [len(found) for found in measured.values()]
    if not pairs or len(sizes) < 2 or least_p(sizes) >= ALPHA:
        counts = ", ".join(f"{len(found)} on {name}" for name, found in by_machine.items())
        yield None, cannot_tell(f"Too few rounds have a figure of all variants: {counts}.")
        return
    found = disagreement(pairs, measured)
    if found is None:
        yield None, CLEAR
    else:
        pair, ends, p = found
        yield pair.variant.id, _found(main_metric(run), pair, measured, ends, p)


def disagreement(
    pairs: Sequence[Pair], measured: Mapping[str, Sequence[int]]
) -> tuple[Pair, tuple[str, str], float] | None:
    """The pair whose order is reversed the most, the machines with its smallest and its largest mean, and p; None where
    chance may have reversed it. ``measured``: machine -> its rounds."""
    groups = list(measured.values())
    widest, p = max(pairs, key=lambda pair: _reversal(pair, groups)), p_of(pairs, groups)
    means = dict(zip(measured, widest.means(groups)))
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    told = p < ALPHA and widest.stands_apart(measured[low]) and widest.stands_apart(measured[high])
    return (widest, (low, high), p) if told else None


def least_p(sizes: Sequence[int]) -> float:
    """Of all ways to deal out as many rounds, those that differ from the most telling one in names only."""
    alike = math.prod(math.factorial(count) for count in Counter(sizes).values())
    return alike / _ways(sizes)


def p_of(pairs: Sequence[Pair], groups: Groups) -> float:
    """How often the largest reversal of all pairs is as large as that of ``groups``, or larger, when whole rounds are
    dealt out to as large groups: exactly, or of draws with a seed that is always the same, ``groups`` among them."""
    seen = max(_reversal(pair, groups) for pair in pairs)
    if seen == 0:
        return 1.0
    rounds, sizes = [round_ for group in groups for round_ in group], [len(group) for group in groups]
    exact = _ways(sizes) <= MOST_DEALT
    dealt = list(_all_ways(rounds, sizes)) if exact else [groups, *_drawn(rounds, sizes)]
    # Sums in another order differ in their last digits.
    extreme = sum(any(_reversal(pair, way) >= seen * (1 - 1e-9) for pair in pairs) for way in dealt)
    return extreme / len(dealt)


def _reversal(pair: Pair, groups: Groups) -> float:
    """Zero where all machines have the same order."""
    means = pair.means(groups)
    return max(0.0, min(max(means), -min(means))) / (pair.spread or 1.0)


def _ways(sizes: Sequence[int]) -> int:
    return math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))


def _all_ways(rounds: Sequence[int], sizes: Sequence[int]) -> Iterator[Groups]:
    if not sizes:
        yield []
        return
    for group in itertools.combinations(rounds, sizes[0]):
        rest = [round_ for round_ in rounds if round_ not in group]
        for others in _all_ways(rest, sizes[1:]):
            yield [group, *others]


def _drawn(rounds: Sequence[int], sizes: Sequence[int]) -> Iterator[Groups]:
    draw, starts = random.Random(1), list(itertools.accumulate(sizes, initial=0))
    for _ in range(MOST_DEALT - 1):
        mixed = draw.sample(rounds, len(rounds))
        yield [mixed[start:end] for start, end in itertools.pairwise(starts)]


def _complete(run: Run) -> Rounds:
    """The rounds in which each variant has a figure, but those variants that have none in any."""
    metric, found = describe(main_metric(run)), {}
    for variant in run.manifest.variants:
        done = done_values(run.of_variant(variant.id), metric)
        found[variant.id] = {r: math.log(v) for r, v in zip(done.repeats, done.values) if v > 0}
    measured = {variant: logs for variant, logs in found.items() if logs}
    rounds = set.intersection(*map(set, measured.values())) if measured else set()
    return {round_: {variant: logs[round_] for variant, logs in measured.items()} for round_ in sorted(rounds)}


def _pairs(run: Run, rounds: Rounds) -> Iterable[Pair]:
    """Of variants that have figures."""
    measured = [v for v in run.manifest.variants if any(v.id in logs for logs in rounds.values())]
    with_baseline = [(v, baseline_among(measured, run.manifest.baseline, v)) for v in measured]
    compared = [(v, other) for v, other in with_baseline if other is not None and other.id != v.id]
    for one, other in compared or itertools.combinations(measured, 2):
        yield Pair(one, other, {r: logs[one.id] - logs[other.id] for r, logs in rounds.items()})


def _found(
    metric: str, pair: Pair, measured: Mapping[str, Sequence[int]], ends: tuple[str, str], p: float
) -> Conclusion:
    """``ends``: the machines with the smallest and the largest mean."""
    low, high = (100 * math.exp(mean) for mean in pair.means([measured[name] for name in ends]))
    on_low, on_high = (f"on {name} ({len(measured[name])} rounds)" for name in ends)
    return Conclusion(
        "found",
        summary=f"{pair.variant.label} has {digits(low)} % of {pair.other.label} {on_low}, and {digits(high)} % {on_high}: p is {p:.2g} when "
        "rounds are dealt out to machines by chance.",
        evidence={
            "other": pair.other.label,
            "lowest_on": ends[0],
            "lowest_percent": round(low, 2),
            "highest_on": ends[1],
            "highest_percent": round(high, 2),
            "p": round(p, 4),
        },
        metrics=(metric,),
        remedy="Compare these variants for each machine by itself. Look under Conditions at what differs between the machines, and "
        "measure once more without those that production does not have.",
    )
