"""What makes a commit bad: ``p99 > 110 %`` of the good end, or ``p99_ms > 5 ms`` by itself."""

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


class Criterion(Record):
    """``metric`` of a bad commit is ``above`` or below ``limit``: in percent of the good end where ``unit`` is %, else
    in ``unit``, and in the metric's own where it is empty."""

    metric: str
    above: bool
    limit: float
    unit: str = ""

    @property
    def relative(self) -> bool:
        return self.unit == "%"

    @property
    def factor(self) -> float:
        """Of a relative limit: of the good end's value."""
        return self.limit / 100

    def of(self, metric: str) -> Criterion:
        """The same of the ``metric`` that was meant, by its full name, an absolute limit in that metric's unit.

        Raises UsageError for a unit that is not of its kind.
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


def parse(text: str) -> Criterion:
    """The metric's name is not looked up here. Raises UsageError."""
    found = _CRITERION.fullmatch(text)
    if found is None:
        raise UsageError(f"{text[:100]!r} is no criterion: METRIC > NUMBER UNIT, or <", hint=EXAMPLE)
    metric, sign, number, unit = found.groups()
    if unit == "%" and float(number) <= 0:
        raise UsageError(f"{text[:100]!r}: a percentage of the good end is above zero", hint=EXAMPLE)
    return Criterion(metric=metric, above=sign == ">", limit=float(number), unit=unit or "")
