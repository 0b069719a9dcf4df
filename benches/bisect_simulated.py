"""Does noisy bisection find the culprit? Simulated histories of 1,000 commits with real noise, beside `git bisect run`

200 histories have one culprit of an effect between 5 % and ten times, 50 have none. The table is in
docs/results/bisect.md, which describes the simulation. Needs neither root nor servers; some minutes.

    python benches/bisect_simulated.py [HISTORIES WITH A CULPRIT] [HISTORIES WITHOUT]
"""

from __future__ import annotations

import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from simulated_history import History, Machine, git_bisect_run, real_noise, searched
from smoke import parser, sized

COMMITS = 1000
EFFECTS = (1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
DRIFT = 0.01
"""From one round to the next: after 100 rounds the machine is typically a tenth slower or faster."""
NOISE = real_noise()


@dataclass
class Tally:
    """What became of some histories."""

    outcomes: Counter[str] = field(default_factory=Counter)
    trials: list[int] = field(default_factory=list)
    measured: list[int] = field(default_factory=list)
    claimed: list[float] = field(default_factory=list)

    def add(self, outcome: str, machine: Machine, wrong: float = 0.0) -> None:
        self.outcomes[outcome] += 1
        self.trials.append(machine.trials)
        self.measured.append(len(machine.measured))
        if outcome in ("right", "right range", "false"):
            self.claimed.append(wrong)

    def row(self) -> list[str]:
        all_of = sum(self.outcomes.values())
        shares = [f"{100 * self.outcomes[name] / all_of:.0f} %" for name in ("right", "right range", "false", "none")]
        return [str(all_of), *shares, *(f"{statistics.median(v):.0f}, {max(v)}" for v in (self.trials, self.measured))]


Method = Callable[[Machine, Tally], None]


def dnsrig(machine: Machine, tally: Tally) -> None:
    answer, _ = searched(machine)
    if answer.kind not in ("commit", "range"):
        tally.add("none", machine)
        return
    culprit = machine.history.culprit
    changes = [culprit, *(machine.history.second or ())[:1]]
    holds = any(c is not None and answer.first <= c <= answer.last for c in changes)
    tally.add(("right" if answer.kind == "commit" else "right range") if holds else "false", machine, answer.wrong)


def git(repeats: int) -> Method:
    def method(machine: Machine, tally: Tally) -> None:
        found = git_bisect_run(machine, repeats)
        tally.add("none" if found is None else "right" if found == machine.history.culprit else "false", machine)

    return method


METHODS: dict[str, Method] = {"dnsrig": dnsrig, "git, 1 trial": git(1), "git, 5 trials": git(5)}


def machine(number: int, history: History, drift: float = DRIFT, builds: float = 0.0) -> Machine:
    """Histories take the series of noise in turn."""
    return Machine(history, list(NOISE.values())[number % len(NOISE)], number, drift, builds)


def histories(count: int, effect: float) -> Iterator[tuple[int, History]]:
    for number in range(count):
        culprit = random.Random(f"culprit {number} {effect}").randint(1, COMMITS)
        yield number, History(COMMITS, culprit, effect)


def beside_git(with_culprit: int, without: int) -> Iterator[list[str]]:
    cases = [(f"{effect:g} times", list(histories(with_culprit // len(EFFECTS), effect))) for effect in EFFECTS]
    cases.append(("no culprit", [(number, History(COMMITS, None)) for number in range(without)]))
    totals = {name: Tally() for name in METHODS}
    for effect, chosen in cases:
        for name, method in METHODS.items():
            tally = Tally()
            for number, history in chosen:
                method(machine(number, history), tally)
                if history.culprit is not None:
                    method(machine(number, history), totals[name])
            yield [effect, name, *tally.row()]
    for name, tally in totals.items():
        claimed = f" (claimed: {100 * statistics.fmean(tally.claimed):.1f} % false)" if name == "dnsrig" else ""
        yield ["all with a culprit", name + claimed, *tally.row()]


def harder(count: int) -> Iterator[list[str]]:
    """What binds: each case against the plain one, at twice the metric."""
    cases: dict[str, Callable[[int, History], Machine]] = {
        "as above": machine,
        "a tenth of commits cannot be built": lambda n, h: machine(n, _with(h, unbuildable=_singles(n))),
        "two stretches of 60 cannot be built": lambda n, h: machine(n, _with(h, unbuildable=_stretches(n))),
        "drift of 5 % a round": lambda n, h: machine(n, h, drift=0.05),
        "each build deviates by 2 %": lambda n, h: machine(n, h, builds=0.02),
        "each build deviates by 10 %": lambda n, h: machine(n, h, builds=0.1),
        "shows in 60 % of trials": lambda n, h: machine(n, _with(h, shows_in=0.6)),
        "a second culprit of 1.5 times": lambda n, h: machine(n, _with(h, second=(_at(n, "second"), 1.5))),
    }
    for name, make in cases.items():
        tally = Tally()
        for number, history in histories(count, 2.0):
            dnsrig(make(number, history), tally)
        yield [name, "dnsrig", *tally.row()]


def _with(history: History, **changes: object) -> History:
    return History(**{**history.__dict__, **changes})


def _at(number: int, what: str) -> int:
    return random.Random(f"{what} {number}").randint(1, COMMITS)


def _singles(number: int) -> frozenset[int]:
    return frozenset(random.Random(f"singles {number}").sample(range(1, COMMITS), COMMITS // 10))


def _stretches(number: int) -> frozenset[int]:
    return frozenset(at + i for at in (_at(number, "one"), _at(number, "other")) for i in range(60) if at + i < COMMITS)


HEAD = ["histories", "method", "number", "right commit", "right range", "false", "no answer", "trials", "commits"]


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("with_culprit", nargs="?", type=int, default=sized(200, smoke=len(EFFECTS)))
    asking.add_argument("without", nargs="?", type=int, default=sized(50, smoke=1))
    asked = asking.parse_args()
    print("Trials and commits measured: median, most.\n")
    print("| " + " | ".join(HEAD) + " |\n" + "| --- " * len(HEAD) + "|")
    for row in beside_git(asked.with_culprit, asked.without):
        print("| " + " | ".join(row) + " |", flush=True)
    print("\nAt twice the metric:\n\n| " + " | ".join(HEAD) + " |\n" + "| --- " * len(HEAD) + "|")
    for row in harder(asked.without):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
