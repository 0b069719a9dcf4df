"""When a run has enough repeats: as soon as each interval is narrow, whether it shows a difference or not.

The decision looks at widths alone. If it looked at p as well, a run would go on until chance gave a difference. That
intervals of a width fixed beforehand keep their confidence in the long run was shown by Chow and Robbins (On the
asymptotic theory of fixed-width sequential confidence intervals for the mean, 1965). For the few repeats of a run it is
simulated: docs/explanation/measuring.md, `benches/stopping_simulated.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from dnsrig.stats.statistics import Interval

MOST_REPEATS = 30
"""Usual end of a run whose intervals do not become narrow."""


def enough(repeats: int, intervals: Iterable[Interval | None], *, percent: float, least: int, most: int) -> bool:
    """Whether a run with ``repeats`` repeats is complete: there are ``most``, or at least ``least`` and every interval
    is within ``percent`` of its middle. None stands for a figure without an interval."""
    if not least <= repeats < most:
        return repeats >= most
    return all(half_width_percent(interval) <= percent for interval in intervals)


def half_width_percent(interval: Interval | None) -> float:
    """The distance from the middle of ``interval`` to its ends in percent, by factors: 95..105.26 is 5.26 %.

    Infinite if there is no interval, or if an end is infinite or not above zero.

    >>> round(half_width_percent(Interval(80, 125, 0.95)), 6)
    25.0
    """
    if interval is None or interval.low <= 0 or not math.isfinite(interval.high):
        return math.inf
    return 100 * (math.sqrt(interval.high / interval.low) - 1)
