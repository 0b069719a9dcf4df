"""Which test compares repeats of one run: power and size in virtual data, with and without drift between rounds.

The summary is in docs/explanation/measuring.md, the choice in dnsrig/stats/significance.py. A variant and its
baseline are measured once a round; both have unit noise, and what a round brings is common to both. The effect is
chosen for 80 % of power of the rank test without drift.

    python benches/rounds_or_ranks.py [DATA SETS A CASE]
"""

from __future__ import annotations

import random
from collections.abc import Callable

from smoke import parser, sized

from dnsrig.stats import significance
from dnsrig.stats.rounds import signed_rank_test
from dnsrig.stats.statistics import ALPHA, rank_test

CASES = [(5, 1), (8, 1), (8, 3), (10, 1), (10, 5), (10, 10), (12, 20), (20, 5), (20, 20)]
"""Repeats, comparisons."""
Drift = Callable[[random.Random, int], list[float]]


def walk(noise: random.Random, rounds: int) -> list[float]:
    found = [0.0]
    for _ in range(rounds - 1):
        found.append(found[-1] + noise.gauss(0, 0.25))
    return found


DRIFTS: dict[str, Drift] = {
    "none": lambda noise, rounds: [0.0] * rounds,
    "each round apart, 0.5": lambda noise, rounds: [noise.gauss(0, 0.5) for _ in range(rounds)],
    "each round apart, 1": lambda noise, rounds: [noise.gauss(0, 1) for _ in range(rounds)],
    "random walk, 0.25 a round": walk,
    "steady, 3 in all": lambda noise, rounds: [3 * place / (rounds - 1) for place in range(rounds)],
}


def rejected(rounds: int, comparisons: int, effect: float, drift: Drift, sets: int) -> tuple[float, float]:
    """Percent of data sets in which the test of all ranks, and the test of rounds, reject at the first step of Holm's
    correction."""
    noise, ranks, signed = random.Random(f"{rounds} {comparisons} {effect}"), 0, 0
    for _ in range(sets):
        common = drift(noise, rounds)
        theirs = [noise.gauss(0, 1) + each for each in common]
        ours = [noise.gauss(effect, 1) + each for each in common]
        ranks += (rank_test(ours, theirs) or 1) * comparisons < ALPHA
        signed += (signed_rank_test([x - y for x, y in zip(ours, theirs, strict=True)]) or 1) * comparisons < ALPHA
    return 100 * ranks / sets, 100 * signed / sets


def effect_for_80_percent(rounds: int, comparisons: int, sets: int) -> float:
    low, high = 0.0, 6.0
    for _ in range(8):
        middle = (low + high) / 2
        enough = rejected(rounds, comparisons, middle, DRIFTS["none"], sets)[0] >= 80
        low, high = (low, middle) if enough else (middle, high)
    return high


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("sets", nargs="?", type=int, default=sized(2000, smoke=1))
    sets = asking.parse_args().sets
    print(
        "| repeats, comparisons | drift between rounds | false alarms: ranks, rounds | power: ranks, rounds | chosen |"
    )
    print("| --- | --- | --- | --- | --- |")
    for rounds, comparisons in CASES:
        effect = effect_for_80_percent(rounds, comparisons, sets)
        chosen = "rounds" if significance.by_rounds(rounds, comparisons) else "ranks"
        for name, drift in DRIFTS.items():
            none, some = (rejected(rounds, comparisons, e, drift, sets) for e in (0.0, effect))
            cells = [", ".join(f"{percent:.{digits}f}" for percent in both) for both, digits in ((none, 1), (some, 0))]
            print(f"| {rounds}, {comparisons} | {name} | {cells[0]} % | {cells[1]} % | {chosen} |", flush=True)


if __name__ == "__main__":
    main()
