"""The scale on which trials are held against each other: larger is worse, and what drifts is added."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dnsrig.comparison.bisection.state import Round, Value
from dnsrig.comparison.criterion import Criterion


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
