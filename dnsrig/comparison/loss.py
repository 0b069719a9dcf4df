"""The loss of each transport: how much less than over UDP, in percent, as operators of resolvers read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dnsrig.comparison.summary import variant_table
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Bound, Change

AXIS, BASE = "transport", "udp"
METRIC = "capacity_qps"
OPPOSITE: dict[Bound, Bound] = {"": "", "≥": "≤", "≤": "≥"}


@dataclass(frozen=True)
class Loss:
    """The capacity of a variant over a transport, less than the capacity over UDP by ``percent``."""

    variant: Variant
    percent: float
    low: float
    high: float
    """The ends of its interval; without one, ``percent``."""
    change: Change
    bound: Bound = ""
    """Of ``percent``, where even the highest rate of a search passed, so that a capacity is only known to be more."""

    @property
    def text(self) -> str:
        return f"{self.bound} {self.percent:.0f}".lstrip()


def losses(run: Run) -> Iterator[Loss]:
    """The loss of each variant that is compared with UDP, in the order of the matrix."""
    for row in variant_table(run, METRIC):
        compared, base = row.comparison, row.against
        if compared is None or compared.percent is None or base is None or base.parameters.get(AXIS) != BASE:
            continue
        interval = compared.interval
        low, high = (interval.low, interval.high) if interval else (compared.percent, compared.percent)
        bound = OPPOSITE[compared.bound]
        yield Loss(row.variant, 100 - compared.percent, 100 - high, 100 - low, compared.change, bound)
