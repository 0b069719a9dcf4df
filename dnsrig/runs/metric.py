"""The registry of metrics: what a metric is, and all metrics by name.

The functions are in the modules of `dnsrig.metrics`, and in other packages. A trial looks its values up here,
so that `dnsrig.runs` does not depend on any single metric.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Literal, Protocol, TypeVar

from dnsrig import discovery
from dnsrig.rundir import TrialRecord
from dnsrig.runs.failures import RAISED

Better = Literal["lower", "higher", "neither"]
Figure = TypeVar("Figure", bound=Callable[..., float | None])


class Trial(Protocol):
    """The part of `dnsrig.runs.trial.Trial` that the registry uses."""

    @property
    def record(self) -> TrialRecord: ...


@dataclass(frozen=True)
class Metric:
    """A named figure of a trial. ``name`` ends in its unit, if it has one."""

    name: str
    title: str
    unit: str
    better: Better
    definition: str
    order: int
    compute: Callable[[Any], float | None]
    """Computes the value from a `dnsrig.runs.trial.Trial`, like the next three. None if the trial lacks the data;
    never a guess."""
    ceiling: Callable[[Any], float | None] | None = None
    """The largest value that a trial can show: a value that reaches it is at least this. None without such a bound."""

    at_limit: Callable[[Any], bool] | None = None
    """Whether the value of a trial that reached its limit is as good as the value of a completed one, for example a
    rate until then. None: never."""

    lower: Callable[[Any], float | None] | None = None
    """The lower end of the value, if the instrument adds a known amount to it; the value itself is the upper end. None:
    the value is exact, or its lower end is not known."""

    def of(self, trial: Trial) -> float | None:
        """The value of ``trial``. Raises whatever any of the metric's functions raises, so a metric that fails has no
        value."""
        for also in (self.at_limit, self.ceiling, self.lower):
            if also is not None:
                also(trial)
        return self.compute(trial)

    def counts(self, trial: Trial) -> bool:
        """Whether the value of ``trial`` counts for its variant: the trial is `done`, or reached a limit that does not
        affect this metric."""
        if trial.record.outcome != "timeout" or self.at_limit is None:
            return trial.record.outcome == "done"
        with contextlib.suppress(*RAISED):  # `of` raised it as well, and reports it
            return self.at_limit(trial)
        return False

    def lower_end(self, trial: Trial, value: float) -> float:
        """The lower end of ``value`` of ``trial``."""
        least = None
        with contextlib.suppress(*RAISED):
            least = None if self.lower is None else self.lower(trial)
        return value if least is None else min(value, least)

    def at_ceiling(self, trial: Trial, value: float) -> bool:
        """Whether ``value`` of ``trial`` is only a lower bound."""
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
    """Every metric by name, the most important first."""
    discovery.plugins("dnsrig.metrics", _brings_metrics)
    return dict(sorted(_registry.items(), key=lambda item: (item[1].order, item[0])))


def _brings_metrics(name: str, module: ModuleType) -> ModuleType | None:
    return module if any(discovery.is_of(metric.compute, module) for metric in _registry.values()) else None
