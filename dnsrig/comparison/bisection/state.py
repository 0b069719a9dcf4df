"""What a search knows: the order of commits, and every trial of them. Everything else is computed from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from dnsrig.comparison.criterion import Criterion
from dnsrig.rundir import Record

Value = float | Literal["unfinished"] | None
"""The value of one trial: the metric; that it did not finish, which is worse than any value; None: it allows no
statement."""
Round = dict[int, Value]
"""Position of a commit -> its trial. The trials of a round lie beside each other in time, in random order."""
GOOD = 0
"""The position of the good end."""


class Limits(Record):
    """Where a search ends without an answer. All that can repeat has one, so every search ends."""

    error: float = Field(0.02, gt=0, lt=0.5)
    """The largest probability, by the model of `posterior`, that the commit is not in the answer."""
    rounds_of_commit: int = Field(20, ge=2, le=100)
    """After which a commit counts as undecided; twice as many for those on both sides of the answer."""
    rounds: int = Field(300, ge=6, le=10_000)
    """In all."""
    stepped_around: int = Field(8, ge=0, le=1000)
    """Commits that cannot be measured or decided, between two neighbours that are decided."""


class State(Record):
    """All that is known. ``next_step`` is a function of it, so a search that was killed goes on from what it wrote."""

    commits: int = Field(ge=1, le=1_000_000)
    """Commits after the good end: positions 1 to ``commits``, the last of which is the bad end."""
    criterion: Criterion
    seed: int = 0
    """Seed of the choice among neighbours of a commit that cannot be measured."""
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    unmeasurable: list[int] = Field(default_factory=list)
    """Commits that cannot be built, or whose trials fail."""
    rounds: list[Round] = Field(default_factory=list)

    @property
    def bad(self) -> int:
        """The position of the bad end."""
        return self.commits


@dataclass(frozen=True)
class Scale:
    """Logarithms, so that a machine that is slower by a tenth adds the same to all; values themselves where one is not
    above zero, as a count of failures."""

    worse_is_more: bool
    logarithms: bool

    def of(self, value: Value) -> float | None:
        """Infinite for a trial that did not finish; None where the trial allows no statement."""
        if value is None:
            return None
        if value == "unfinished":
            return math.inf
        number = math.log(value) if self.logarithms else float(value)
        return number if self.worse_is_more else -number


def scale(rounds: Iterable[Round], criterion: Criterion) -> Scale:
    """By all values so far."""
    numbers = (value for trials in rounds for value in trials.values() if isinstance(value, int | float))
    return Scale(criterion.above, all(number > 0 for number in numbers))
