"""Bins into which trials are sorted, as the trials of both ends set them: below the good end, like it, between both,
like the bad end, beyond it.

What lies beyond or between says nothing for either end, unless the ends have such trials themselves: so outliers,
which both have, lead nobody astray, and a commit that is like neither end shows. Where the ends overlap, quarters of
their trials stand in the place of the three bins in the middle. They are not chosen to part the ends best: that would
overrate what a few trials show.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dnsrig.stats.statistics import outlying

GAP_SHARE = 0.25
"""Of the gap between both ends, on either side, this much still belongs to the end."""
MARGIN_SHARE = 0.5
"""Of the distance between the medians of both ends: so far beyond an end's trials another one is still like them."""


def edges(good: Sequence[float], bad: Sequence[float]) -> list[float]:
    """The upper edges of all bins but the last, which they include; bad values are larger."""
    typical_good, typical_bad = _typical(good), _typical(bad)
    both = [*typical_good, *typical_bad]
    margin = MARGIN_SHARE * abs(statistics.median(bad) - statistics.median(good))
    low, high = max(typical_good), min(typical_bad)
    share = GAP_SHARE * (high - low)
    between = [low + share, high - share] if low < high else statistics.quantiles(both, n=4, method="inclusive")
    return [min(both) - margin, *between, max(both) + margin]


def _typical(values: Sequence[float]) -> list[float]:
    """Without outliers: these have no bin made for them."""
    odd = set(outlying(values))
    return [value for index, value in enumerate(values) if index not in odd]
