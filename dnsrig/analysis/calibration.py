"""What the spread of repeats allows to tell: the smallest difference that so many repeats would show.

By resampling whole trials, with a seed. Both sides are drawn from the same measured repeats, with replacement: their
logarithms around the mean, and wider by the root of m / (m - 1), because m values lie closer to their own mean than to
the true one. One side is then slower by a ratio. The difference is told as `dnsrig compare` tells it of one comparison:
the test that this number of repeats has (`significance.by_rounds`) gives p below 5 %, and 100 % is out of its interval.
The smallest ratio is that with which it is told in 80 % of the drawn data sets.

Both interval ends grow in proportion to the ratio, and a rank test turns only where two values change places. So for
each data set the ratio from which it is told is computed, not searched, and the answer is the 80th percentile of these.

It is assumed that trials are independent, that what is slower is slower by the same factor in all its trials, that the
other side has the same spread, and that the machine stays as noisy as it was. Drift that rounds have in common, which
the test of rounds removes, is not drawn: with it, 8 repeats and more show rather less than is told here.
"""

from __future__ import annotations

import math
import random
import statistics as stdlib
from collections.abc import Sequence

from dnsrig.analysis import rounds, significance, statistics
from dnsrig.analysis.statistics import ALPHA, FEWEST_REPEATS
from dnsrig.certificate import Measured, Smallest

POWER = 0.80
"""Cohen's convention (Statistical Power Analysis for the Behavioral Sciences, 1988): missed one time in five."""
DATA_SETS = 1000
"""The share that is told is then known to ± 2.5 % (two standard errors)."""
DATA_SETS_LEFT_OUT = 200
"""For the range with each trial left out, which needs no such precision."""
FEWEST_TRIALS = 5
"""Measured ones, below which a spread is not resampled."""
REPEATS = (3, 5, 7, 10, 20)


def measured(values: Sequence[float | None]) -> Measured | None:
    """Median and range of those that are there; None of nothing."""
    found = statistics.spread([value for value in values if value is not None])
    return None if found is None else Measured(median=found.median, low=found.low, high=found.high, trials=found.n)


def smallest_differences(values: Sequence[float], seed: int) -> list[Smallest]:
    """For each of ``REPEATS`` a side. ``values``: one figure a trial, of one variant; lower is better."""
    return [_smallest(values, repeats, seed) for repeats in REPEATS]


def _smallest(values: Sequence[float], repeats: int, seed: int) -> Smallest:
    ratio = smallest_ratio(values, repeats, seed=seed)
    if ratio is None:
        return Smallest(repeats=repeats, percent=None)
    left_out = [[*values[:place], *values[place + 1 :]] for place in range(len(values))]
    others = [smallest_ratio(rest, repeats, seed=seed, data_sets=DATA_SETS_LEFT_OUT) for rest in left_out]
    known = [other for other in others if other is not None]
    return Smallest(
        repeats=repeats,
        percent=_percent(ratio),
        low=_percent(min(known)) if known else None,
        high=_percent(max(known)) if known else None,
    )


def _percent(ratio: float) -> float:
    return round(100 * (ratio - 1), 2)


def smallest_ratio(
    values: Sequence[float], repeats: int, *, seed: int, data_sets: int = DATA_SETS, power: float = POWER
) -> float | None:
    """The smallest ratio that ``repeats`` a side show with ``power``; None: none, or too few values to say.

    >>> smallest_ratio([1.0, 1.0, 1.0, 1.0, 1.0], 5, seed=1)
    1.0
    >>> smallest_ratio([1.0, 1.1, 0.9, 1.0, 1.2], 3, seed=1) is None
    True
    """
    if repeats < FEWEST_REPEATS or len(values) < FEWEST_TRIALS or min(values) <= 0:
        return None
    pool, noise = _pool(values), random.Random(f"{seed} {repeats}")
    told = sorted(told_from(_draw(pool, repeats, noise), _draw(pool, repeats, noise)) for _ in range(data_sets))
    return told[math.ceil(power * data_sets) - 1]


def _pool(values: Sequence[float]) -> list[float]:
    """Logarithms around their mean, as wide as those of all trials that could have been."""
    logs = [math.log(value) for value in values]
    mean, wider = stdlib.fmean(logs), math.sqrt(len(logs) / (len(logs) - 1))
    return [wider * (log - mean) for log in logs]


def _draw(pool: Sequence[float], repeats: int, noise: random.Random) -> list[float]:
    return [math.exp(noise.choice(pool)) for _ in range(repeats)]


def told_from(variant: Sequence[float], baseline: Sequence[float]) -> float:
    """The ratio from which ``variant``, times it, is told to be slower than ``baseline``. Both have one length."""
    if significance.by_rounds(len(variant), 1):
        found = rounds.typical_ratio(list(zip(variant, baseline, strict=True)))
        return 1 / found[1].low if found else math.inf
    interval = statistics.ratio_interval(variant, baseline)
    return math.inf if interval is None else max(1 / interval.low, _rank_test_turns(variant, baseline))


def _rank_test_turns(variant: Sequence[float], baseline: Sequence[float]) -> float:
    """The same by the rank test alone: it can turn only where a value of the one passes one of the other."""
    turns = sorted(theirs / ours for ours in variant for theirs in baseline)
    low, high = 0, len(turns)  # beyond the last one every value is larger, which is told
    while low < high:
        middle = (low + high) // 2
        between = turns[middle] * (1 + 1e-9)
        p = statistics.rank_test([between * value for value in variant], baseline)
        if p is not None and p < ALPHA and between * stdlib.median(variant) > stdlib.median(baseline):
            high = middle
        else:
            low = middle + 1
    return turns[min(low, len(turns) - 1)]
