"""Histories of commits whose culprit is known, and a machine that measures them with the noise of real trials.

The noise is that of `trial_noise.json`: repeats of one variant, whose ratios to their median are drawn at random. To it
comes drift, a random walk of the machine, which is the same for all trials of a round and goes on between rounds.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dnsrig.comparison.bisection.search import Answer, Measure, next_step
from dnsrig.comparison.bisection.state import GOOD, Limits, Round, State
from dnsrig.comparison.criterion import parse

CRITERION = "p99_ms > 102 %"
TYPICAL = 5.0
"""What the good end measures, without noise."""


def real_noise() -> dict[str, list[float]]:
    """Series -> deviations from its median, as logarithms of ratios."""
    stored = json.loads(Path(__file__).with_name("trial_noise.json").read_text())["series"]
    return {
        name: [math.log(value / statistics.median(each["values"])) for value in each["values"]]
        for name, each in stored.items()
    }


@dataclass(frozen=True)
class History:
    """Commits 1 to ``commits`` after the good end; from ``culprit`` on the metric is ``effect`` times as large."""

    commits: int
    culprit: int | None
    effect: float = 1.0
    unbuildable: frozenset[int] = frozenset()
    shows_in: float = 1.0
    """The share of trials in which the effect shows at all."""
    second: tuple[int, float] | None = None
    """Another culprit, and its effect."""


@dataclass
class Machine:
    """Measures a history. Everything is drawn from ``seed``."""

    history: History
    noise: Sequence[float] = (0.0,)
    seed: int = 0
    drift: float = 0.0
    """Of a round to the next: the standard deviation of the logarithm."""
    builds: float = 0.0
    """How much builds of equal code differ: each has a deviation of its own, which stays."""
    trials: int = 0
    measured: set[int] = field(default_factory=set)
    _drifted: float = 0.0

    def __post_init__(self) -> None:
        self._random = random.Random(f"machine {self.seed}")

    def round(self, commits: Sequence[int]) -> Round:
        """A trial of each."""
        self._drifted += self._random.gauss(0, self.drift)
        return {commit: self.trial(commit) for commit in commits}

    def trial(self, commit: int) -> float:
        self.trials += 1
        self.measured.add(commit)
        history = self.history
        log = self._drifted + self._random.choice(self.noise) + self._of_build(commit)
        shows = history.shows_in == 1.0 or self._random.random() < history.shows_in
        if history.culprit is not None and commit >= history.culprit and shows:
            log += math.log(history.effect)
        if history.second is not None and commit >= history.second[0]:
            log += math.log(history.second[1])
        return TYPICAL * math.exp(log)

    def _of_build(self, commit: int) -> float:
        return random.Random(f"build {self.seed} {commit}").gauss(0, self.builds) if self.builds else 0.0


def searched(machine: Machine, criterion: str = CRITERION, limits: Limits | None = None) -> tuple[Answer, State]:
    """The search to its end."""
    found = State(
        commits=machine.history.commits,
        criterion=parse(criterion),
        seed=machine.seed,
        limits=limits or Limits.model_validate({}),
    )
    while isinstance(step := next_step(found), Measure):
        broken = sorted(machine.history.unbuildable.intersection(step.commits) - {GOOD, found.bad})
        if broken:
            found.unmeasurable += broken
        else:
            found.rounds.append(machine.round(step.commits))
    return step, found


def git_bisect_run(machine: Machine, repeats: int, limit: float = 1.02) -> int | None:
    """What `git bisect run` finds with a script that takes the median of ``repeats`` trials.

    The script's threshold lies in the middle between both ends, measured as often, on a logarithmic scale. None where
    these do not differ by ``limit``.
    """

    def median(commit: int) -> float:
        return statistics.median([machine.round([commit])[commit] for _ in range(repeats)])

    good, bad = GOOD, machine.history.commits
    of_good, of_bad = median(good), median(bad)
    if of_bad <= of_good * limit:
        return None
    threshold = math.sqrt(of_good * of_bad)
    while bad - good > 1:
        middle = (good + bad) // 2
        if median(middle) > threshold:
            bad = middle
        else:
            good = middle
    return bad
