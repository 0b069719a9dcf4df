"""How often the trap `machines-disagree` finds something in virtual data: where machines agree, and where they do not.

The summary is in docs/explanation/machines.md. Two variants are measured in rounds that scatter alike on all
machines; a machine's ratio is given in standard deviations of a round.

    python benches/machines_disagree.py [RUNS A CASE]
"""

from __future__ import annotations

import random

from smoke import parser, sized

from dnsrig.rundir import Variant
from dnsrig.traps.machines_disagree import Pair, disagreement

CASES: list[tuple[str, list[float], int]] = [
    ("equal on both", [0, 0], 5),
    ("equal on the one, two deviations on the other", [0, 2], 5),
    ("equal on one of three, two deviations on the others", [0, 2, 2], 3),
    ("reversed by one deviation", [-1, 1], 5),
    ("reversed by two deviations", [-2, 2], 5),
]
"""What it is, the ratio on each machine, rounds on each."""
ONE, OTHER = (Variant(id=name, parameters={}) for name in ("one", "other"))


def found_percent(ratios: list[float], rounds: int, runs: int) -> float:
    noise = random.Random(f"{ratios} {rounds}")
    measured = {str(machine): range(machine * rounds, (machine + 1) * rounds) for machine in range(len(ratios))}
    found = 0
    for _ in range(runs):
        logs = {r: ratios[int(machine)] + noise.gauss(0, 1) for machine, own in measured.items() for r in own}
        found += disagreement([Pair(ONE, OTHER, logs)], measured) is not None
    return 100 * found / runs


def main(runs: int) -> None:
    print(f"| {runs} runs each | rounds a machine | found |\n| --- | --- | --- |")
    for what, ratios, rounds in CASES:
        print(f"| {what} | {rounds} | {found_percent(ratios, rounds, runs):.1f} % |")


if __name__ == "__main__":
    asking = parser(__doc__)
    asking.add_argument("runs", nargs="?", type=int, default=sized(400, smoke=2))
    main(asking.parse_args().runs)
