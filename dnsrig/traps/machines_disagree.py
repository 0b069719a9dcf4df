"""One variant is faster on one machine, another variant on another machine.

Machines of the same model differ in speed; ratios to the baseline on the same machine remove that difference. But if
the order of two variants depends on the machine, no ratio holds for all machines: the result of the run depends on how
many machines of each kind it used.

How it is detected: for each variant and its baseline (without a baseline, for all pairs) the trap computes the
logarithm of their ratio in each round, and the mean for each machine. The reversal of a pair is the smaller of the
largest mean and the negative of the smallest mean, in units of the spread over all rounds. The largest reversal of all
pairs is compared with the reversals that result when whole rounds are assigned to the machines in all other ways, or in
many random ways. A round is a block: if machines agree, any round could have been measured on any of them.

If machines agree, the trap is found in at most 5 % of runs, and in fewer, because each side must also lie three
standard errors of its machine's rounds away from no difference. If ratios differ but no order does, only this second
condition protects: a pair that is equal on one machine but not on the others is found in about 2 % of runs with five
rounds per machine, in 5 % with three. This assumes that rounds vary alike on all machines.
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

from dnsrig.comparison.summary import baseline_among, describe, done_samples, main_metric
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import ALPHA
from dnsrig.text import digits
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 65
GROUP = "statistics"
TITLE = "machines disagree on the order of variants"
SOURCE = "A. Maricq et al., Taming Performance Variability (OSDI 2018): servers of one type differ; Gail and Simon (1985): interactions that reverse"
MOST_DEALT = 2_000
"""Largest number of ways to assign the rounds that are all examined; of more, this number is drawn at random."""
STANDARD_ERRORS = 3
"""Least distance from no difference, in standard errors of the mean of a machine's rounds."""
FEWEST_ROUNDS = 2
"""Least number of rounds on each machine: a single one has no spread."""
MOST_PAIRS = 200
"""Largest number of pairs of variants, the first of the matrix: 2,000 ways take 1.5 s."""

Rounds = dict[int, dict[str, float]]
"""Repeat -> variant -> logarithm of its value."""
Groups = Sequence[Sequence[int]]
"""The rounds of each machine."""


@dataclass(frozen=True)
class Pair:
    """Two variants; the second is the baseline, or comes later in the matrix."""

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
    """Compare the machines of a run with several machines and several variants."""
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
        yield None, cannot_tell(f"Too few rounds have a figure for all variants: {counts}.")
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
    """The pair whose order is reversed the most, the machines with its smallest and its largest mean, and p; None if
    chance may have reversed it. ``measured``: machine -> its rounds."""
    groups = list(measured.values())
    widest, p = max(pairs, key=lambda pair: _reversal(pair, groups)), p_of(pairs, groups)
    means = dict(zip(measured, widest.means(groups)))
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    told = p < ALPHA and widest.stands_apart(measured[low]) and widest.stands_apart(measured[high])
    return (widest, (low, high), p) if told else None


def least_p(sizes: Sequence[int]) -> float:
    """The smallest p that this number of rounds can give: the share of assignments that differ from the most extreme
    one only in the names of machines."""
    alike = math.prod(math.factorial(count) for count in Counter(sizes).values())
    return alike / _ways(sizes)


def p_of(pairs: Sequence[Pair], groups: Groups) -> float:
    """Share of assignments of whole rounds to groups of the same sizes whose largest reversal is at least as large as
    with ``groups``: exact, or from draws with a fixed seed, ``groups`` among them."""
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
    """The reversal of a pair; zero if it has the same order on all machines."""
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
    """The rounds in which each variant has a figure, not counting variants without any figure."""
    metric, found = describe(main_metric(run)), {}
    for variant in run.manifest.variants:
        done = done_samples(run.of_variant(variant.id), metric)
        measured_in = {s.round: s.value for s in done if s.round is not None and not s.at_least}
        found[variant.id] = {r: math.log(v) for r, v in measured_in.items() if v > 0}
    measured = {variant: logs for variant, logs in found.items() if logs}
    rounds = set.intersection(*map(set, measured.values())) if measured else set()
    return {round_: {variant: logs[round_] for variant, logs in measured.items()} for round_ in sorted(rounds)}


def _pairs(run: Run, rounds: Rounds) -> Iterable[Pair]:
    """The pairs to compare, of variants that have figures."""
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
        summary=f"{pair.variant.label} is at {digits(low)} % of {pair.other.label} {on_low}, and at {digits(high)} % {on_high} (p = {p:.2g} that "
        "this is chance).",
        evidence={
            "other": pair.other.label,
            "lowest_on": ends[0],
            "lowest_percent": round(low, 2),
            "highest_on": ends[1],
            "highest_percent": round(high, 2),
            "p": round(p, 4),
        },
        metrics=(metric,),
        remedy="Compare these variants on each machine separately. See under Conditions how the machines differ, and measure again "
        "without machines of a kind that production does not have.",
    )
