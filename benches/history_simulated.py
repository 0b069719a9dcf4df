"""How often `dnsrig history` reports a change where nothing changed, and which changes it finds: simulated histories

The tables are in docs/results/history.md. Three methods get the same histories: E-divisive over ranks, which dnsrig
uses; E-divisive over the values; and the exact rank test with Holm's correction, which compares each version with the
version before it. Each history has its own seed, so a part of them can be examined alone.

    python benches/history_simulated.py [HISTORIES WITHOUT A CHANGE, A CASE] [HISTORIES WITH CHANGES, A CASE]
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

from smoke import parser, sized

from dnsrig.stats import change_points as e_divisive
from dnsrig.stats.statistics import ALPHA, holm, rank_test

Noise = Callable[[random.Random], float]
"""One trial, in percent of the level of its version."""
History = list[list[float]]
Method = Callable[[History], set[int]]

NOISES: dict[str, Noise] = {
    "normal, 5 %": lambda dice: dice.gauss(100, 5),
    "log-normal, 20 %": lambda dice: 100 * dice.lognormvariate(0, 0.2),
    "normal, 5 %; one trial in ten takes twice as long": lambda dice: (
        dice.gauss(100, 5) * (2 if dice.random() < 0.1 else 1)
    ),
    "two modes 10 % apart, 1 % each": lambda dice: dice.gauss(dice.choice((95, 105)), 1),
}
SIZES = sized([(2, 5), (6, 5), (12, 5), (12, 10), (24, 5)], smoke=[(2, 5), (6, 5)])
"""Versions, trials of each."""
BUILDS_APART = (1.0, 2.0)
"""Percent by which versions differ at random, as builds do by where their code lies, or days by the machine."""
CHANGES: dict[str, dict[int, float]] = {
    "one step of 5 % in the middle": {6: 5},
    "one step of 10 % in the middle": {6: 10},
    "one step of 20 % in the middle": {6: 20},
    "a step of 10 % in the newest version": {11: 10},
    "a step of 20 % in the newest version": {11: 20},
    "20 % in one version, taken back by the next": {6: 20, 7: -20},
    "10 % up, and back four versions later": {4: 10, 8: -10},
    "two steps of 10 %": {4: 10, 8: 10},
}
"""Version -> percent by which it differs from the one before, in histories of 12 versions."""
TRIALS = 5


def by_ranks(history: History) -> set[int]:
    return {change.at for change in e_divisive.change_points(history)}


def by_values(history: History) -> set[int]:
    with mock.patch.object(e_divisive, "doubled_midranks", list):
        return by_ranks(history)


def by_neighbours(history: History) -> set[int]:
    tests = [rank_test(before, after) or 1.0 for before, after in itertools.pairwise(history)]
    return {at for at, p in enumerate(holm(tests), start=1) if p < ALPHA}


METHODS: dict[str, Method] = {"ranks": by_ranks, "values": by_values, "neighbours": by_neighbours}


def simulated(
    seed: str, noise: Noise, versions: int, trials: int, steps: dict[int, float], apart_percent: float = 0.0
) -> History:
    dice, level, found = random.Random(seed), 100.0, []
    for version in range(versions):
        level += steps.get(version, 0.0)
        here = level + dice.gauss(0, apart_percent)
        found.append([here / 100 * noise(dice) for _ in range(trials)])
    return found


def table(header: Sequence[str], rows: Iterator[list[str]]) -> None:
    print(f"\n| {' | '.join(header)} |\n|{' --- |' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def without_change(histories: int) -> Iterator[list[str]]:
    """Percent of histories in which a method reports any change."""
    cases = [(name, size, 0.0) for name in NOISES for size in SIZES]
    cases += [("normal, 5 %", (12, 5), apart) for apart in BUILDS_APART]
    for name, (versions, trials), apart in cases:
        told = dict.fromkeys(METHODS, 0)
        for number in range(histories):
            seed = f"{name} {versions} {trials} {apart} {number}"
            history = simulated(seed, NOISES[name], versions, trials, {}, apart)
            for method, changes in METHODS.items():
                told[method] += bool(changes(history))
        more = f"; versions {apart:g} % apart" if apart else ""
        yield [name + more, f"{versions} × {trials}", *(f"{100 * count / histories:.1f} %" for count in told.values())]


def with_changes(histories: int) -> Iterator[list[str]]:
    """Percent of histories in which a method reports exactly the changes; in brackets, in which it reports others."""
    for name in list(NOISES)[: sized(2, smoke=1)]:
        for change, steps in CHANGES.items():
            right, wrong = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0)
            for number in range(histories):
                history = simulated(f"{name} {change} {number}", NOISES[name], 12, TRIALS, steps)
                for method, changes in METHODS.items():
                    told = changes(history)
                    right[method] += told == set(steps)
                    wrong[method] += bool(told - set(steps))
            cells = [f"{100 * right[m] / histories:.0f} % ({100 * wrong[m] / histories:.0f} %)" for m in METHODS]
            yield [name, change, *cells]


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("without", nargs="?", type=int, default=sized(300, smoke=1))
    asking.add_argument("some", nargs="?", type=int, default=sized(150, smoke=1))
    asked = asking.parse_args()
    print(f"{asked.without} histories a line without a change, {asked.some} with changes")
    if asked.without:
        table(["noise", "versions × trials", *METHODS], without_change(asked.without))
    if asked.some:
        table(["noise", "what changes", *METHODS], with_changes(asked.some))


if __name__ == "__main__":
    main()
