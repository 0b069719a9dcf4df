"""The registry of metrics: a metric is a function over a trial, in a module of this folder or of another package.

Each says its unit, whether lower or higher is better, and exactly from which moment to which.
To add one, add a function with ``@metric`` in a new file here, or in a plug-in (`dnsrig.discovery`); nothing else needs
to know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from dnsrig import discovery
from dnsrig.analysis.failures import RAISED
from dnsrig.rundir import TrialRecord

Better = Literal["lower", "higher", "neither"]
Figure = TypeVar("Figure", bound=Callable[..., float | None])


class Trial(Protocol):
    """All that the registry has to know of `dnsrig.analysis.read.Trial`, which reads it."""

    @property
    def record(self) -> TrialRecord: ...


@dataclass(frozen=True)
class Metric:
    """A named figure of a trial. ``name`` ends in its unit where it has one."""

    name: str
    title: str
    unit: str
    better: Better
    definition: str
    order: int
    compute: Callable[[Any], float | None]
    """Over a `dnsrig.analysis.read.Trial`, as the next three. None where the trial lacks the data; never a guess."""
    ceiling: Callable[[Any], float | None] | None = None
    """The largest value that could be told in a trial: one that reaches it is at least this. None where there is no
    such bound."""

    at_limit: Callable[[Any], bool] | None = None
    """Whether a trial that reached its limit has a value as good as one that is done: a rate of what was done until
    then. None: never."""

    lower: Callable[[Any], float | None] | None = None
    """The least that the value can have been in a trial, where the instrument adds to it by a known amount; the value
    is the most. None: it is exact, or nothing is known of the least."""

    def of(self, trial: Trial) -> float | None:
        """The value of ``trial``. Raises what any of the metric's functions raises, so that one that fails has no value
        at all."""
        for also in (self.at_limit, self.ceiling, self.lower):
            if also is not None:
                also(trial)
        return self.compute(trial)

    def counts(self, trial: Trial) -> bool:
        """Whether ``trial`` ended in a way that makes its value one of the variant's: `done`, or at a limit that this
        metric does not mind."""
        if trial.record.outcome != "timeout" or self.at_limit is None:
            return trial.record.outcome == "done"
        with contextlib.suppress(*RAISED):  # `of` raised it as well, and it is told there
            return self.at_limit(trial)
        return False

    def lower_end(self, trial: Trial, value: float) -> float:
        """The least that ``value`` of ``trial`` can have been."""
        least = None
        with contextlib.suppress(*RAISED):
            least = None if self.lower is None else self.lower(trial)
        return value if least is None else min(value, least)

    def at_ceiling(self, trial: Trial, value: float) -> bool:
        """Whether ``value`` of ``trial`` is only known to be at least this."""
        most = None
        with contextlib.suppress(*RAISED):
            most = None if self.ceiling is None else self.ceiling(trial)
        return most is not None and value >= most


_registry: dict[str, Metric] = {}


def metric(
    *,
    title: str,
    unit: str,
    better: Better,
    order: int = 100,
    ceiling: Callable[[Any], float | None] | None = None,
    at_limit: Callable[[Any], bool] | None = None,
    lower: Callable[[Any], float | None] | None = None,
) -> Callable[[Figure], Figure]:
    """Register the decorated function; its name is the metric's, its docstring the definition."""

    def register(function: Figure) -> Figure:
        if function.__name__ in _registry:
            raise ValueError(f"metric {function.__name__} is defined twice")
        definition = " ".join((function.__doc__ or "").split())
        _registry[function.__name__] = Metric(
            function.__name__, title, unit, better, definition, order, function, ceiling, at_limit, lower
        )
        return function

    return register


@cache
def all_metrics() -> dict[str, Metric]:
    """Every metric by name, the most telling first."""
    discovery.plugins(__name__, discovery.having())
    return dict(sorted(_registry.items(), key=lambda item: (item[1].order, item[0])))
