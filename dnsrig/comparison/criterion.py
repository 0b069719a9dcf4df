"""What counts as bad: ``p99 > 110 %`` of what it is compared with, or ``p99_ms > 5 ms`` by itself.

The one grammar of rules (``--fail-if``) and of criteria (``dnsrig bisect --metric``).
"""

from __future__ import annotations

import re

from dnsrig.errors import UsageError
from dnsrig.rundir import Record

EXAMPLE = "e.g. --metric 'p99_ms > 110 %' (of the good end), or --metric 'p99_ms > 5 ms'"
_CRITERION = re.compile(
    r"\s*([a-z][a-z0-9_.]*)\s*([<>])\s*(\d{1,12}(?:\.\d{1,9})?)\s*(%|[A-Za-z]\w{0,9})?\s*", re.ASCII
)
_TIMES_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"qps": "per_s", "per_s": "per_s"}
UNITS = ("per_s", *_TIMES_S, "bytes", "percent", "qps")
"""Endings of a metric's name that may be left out: ``transfer_time`` for ``transfer_time_s``; the first that fits
counts."""


class Criterion(Record):
    """``metric`` is bad ``above`` or below ``limit``: in percent of what it is compared with if ``unit`` is %, else in
    ``unit``, and in the metric's own if ``unit`` is empty."""

    metric: str
    above: bool
    limit: float
    unit: str = ""

    @property
    def relative(self) -> bool:
        return self.unit == "%"

    @property
    def factor(self) -> float:
        """The relative limit as a factor."""
        return self.limit / 100

    def of(self, metric: str) -> Criterion:
        """This criterion for ``metric``, which is the full name, with an absolute limit in that metric's unit.

        Raises UsageError if the unit is of another kind.
        """
        if self.relative or not self.unit:
            return self.model_copy(update={"metric": metric})
        own = next((unit for unit in _TIMES_S if re.search(rf"(?<!per)_{unit}$", metric)), "")
        if own and self.unit in _TIMES_S:
            limit = self.limit * _TIMES_S[self.unit] / _TIMES_S[own]
            return Criterion(metric=metric, above=self.above, limit=limit, unit=own)
        named = _RATES.get(self.unit, self.unit.lower())
        if metric.endswith(f"_{named}") and named not in _TIMES_S:
            return self.model_copy(update={"metric": metric, "unit": named})
        raise UsageError(
            f"{self.unit} is no unit of {metric}",
            hint="leave the unit out for that of the metric's name, or write % for percent of the good end",
        )

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.metric} {'>' if self.above else '<'} {self.limit:.12g}{unit}"


def read(text: str) -> Criterion | None:
    """``METRIC > NUMBER UNIT`` or ``METRIC < NUMBER UNIT``; None if it is neither. The metric is not looked up here."""
    found = _CRITERION.fullmatch(text)
    if found is None:
        return None
    metric, sign, number, unit = found.groups()
    return Criterion(metric=metric, above=sign == ">", limit=float(number), unit=unit or "")


def parse(text: str) -> Criterion:
    """The criterion of a search. Raises UsageError."""
    found = read(text)
    if found is None:
        raise UsageError(f"{text[:100]!r} is no criterion: METRIC > NUMBER UNIT, or <", hint=EXAMPLE)
    if found.relative and found.limit <= 0:
        raise UsageError(f"{text[:100]!r}: a percentage of the good end is above zero", hint=EXAMPLE)
    return found


def without_unit(metric: str) -> str:
    """The name of ``metric`` without its unit."""
    return next((metric.removesuffix(f"_{unit}") for unit in UNITS if metric.endswith(f"_{unit}")), metric)
