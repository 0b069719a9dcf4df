"""What the spread of repeats allows to tell: the smallest difference that so many repeats would show.

By resampling whole trials, with a seed. Both sides are drawn from the same measured repeats, with replacement: their
logarithms around the mean, and wider by the root of m / (m - 1), because m values lie closer to their own mean than to
the true one. One side is then slower by a ratio. The difference is found as `dnsrig compare` finds it with one
comparison: the test that this number of repeats has (`significance.by_rounds`) gives p below 5 %, and 100 % is out of
its interval. The smallest ratio is the one that is found in 80 % of the drawn data sets.

Both interval ends grow in proportion to the ratio, and a rank test turns only where two values change places. So for
each data set the ratio from which it is found is computed, not searched, and the answer is the 80th percentile of
these.

It is assumed that trials are independent, that what is slower is slower by the same factor in all its trials, that the
other side has the same spread, and that the machine stays as noisy as it was. Drift that rounds have in common, which
the test of rounds removes, is not drawn: with it, 8 repeats and more show rather less than stated here.
"""

from __future__ import annotations

import math
import random
import statistics as stdlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dnsrig.certificate import VETH, Certificate, Floor, Measured, Smallest
from dnsrig.rundir import Scalar
from dnsrig.runs.cpu import FOREIGN_SHARE
from dnsrig.runs.load_result import LoadResult
from dnsrig.stats import rounds, significance, statistics
from dnsrig.stats.statistics import ALPHA, FEWEST_REPEATS
from dnsrig.text import digits

POWER = 0.80
"""Cohen's convention (Statistical Power Analysis for the Behavioral Sciences, 1988): missed one time in five."""
DATA_SETS = 1000
"""The share that is found is then known to ± 2.5 % (two standard errors)."""
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
    """Logarithms around their mean, as wide as for all trials that could have been made."""
    logs = [math.log(value) for value in values]
    mean, wider = stdlib.fmean(logs), math.sqrt(len(logs) / (len(logs) - 1))
    return [wider * (log - mean) for log in logs]


def _draw(pool: Sequence[float], repeats: int, noise: random.Random) -> list[float]:
    return [math.exp(noise.choice(pool)) for _ in range(repeats)]


def told_from(variant: Sequence[float], baseline: Sequence[float]) -> float:
    """The ratio from which ``variant``, times it, is found to be slower than ``baseline``. Both have one length."""
    if significance.by_rounds(len(variant), 1):
        found = rounds.typical_ratio(list(zip(variant, baseline, strict=True)))
        return 1 / found[1].low if found else math.inf
    interval = statistics.ratio_interval(variant, baseline)
    return math.inf if interval is None else max(1 / interval.low, _rank_test_turns(variant, baseline))


def _rank_test_turns(variant: Sequence[float], baseline: Sequence[float]) -> float:
    """The ratio by the rank test alone: it can turn only where a value of the one passes one of the other."""
    turns = sorted(theirs / ours for ours in variant for theirs in baseline)
    low, high = 0, len(turns)  # beyond the last one every value is larger, which is found
    while low < high:
        middle = (low + high) // 2
        between = turns[middle] * (1 + 1e-9)
        p = statistics.rank_test([between * value for value in variant], baseline)
        if p is not None and p < ALPHA and between * stdlib.median(variant) > stdlib.median(baseline):
            high = middle
        else:
            low = middle + 1
    return turns[min(low, len(turns) - 1)]


WINDOW_NS = 250_000_000
"""In which a CPU's rest is looked at: shorter than a step of the ramp, and 25 ticks of its clock."""
BUSY_SHARE = 0.95
"""Share of a window from which on a CPU has no time to spare."""


@dataclass(frozen=True)
class Bound:
    """Which side kept a rate from being higher, with the numbers."""

    side: Literal["instrument", "server", "not known"]
    why: str


def bound(ramp: LoadResult, server_busy: float | None, foreign: float) -> Bound:
    """The side that kept the rate of a ramp from being higher.

    ``server_busy``: the share of the server's CPUs that was busy when they had least rest; ``foreign``: what other
    programs took of them, from start to end.
    """
    failed = [step for step in ramp.steps if not step.holds and step.rate_qps > (ramp.capacity_qps or 0.0)]
    if not failed:
        return Bound("not known", "no rate was too high")
    step = min(failed, key=lambda step: step.rate_qps)
    at = f"at {step.rate_qps:,.0f}/s"
    if step.instrument_failed:
        return Bound("instrument", f"{at} it sent {step.sent_qps:,.0f}/s, 1 % of them {_late(step.lag_p99_ns)} late")
    if server_busy is None:
        return Bound("not known", f"{at} answers were late or missing; how busy the server's CPUs were is not known")
    if foreign > FOREIGN_SHARE:
        return Bound(
            "not known", f"{at} answers were late or missing, and others took {foreign:.0%} of the server's CPUs"
        )
    told = f"the server's CPUs were busy for {server_busy:.0%} of the time when busiest"
    if server_busy >= BUSY_SHARE:
        return Bound("server", f"{at} answers were late or missing, and {told}")
    return Bound("not known", f"{at} answers were late or missing, though the queries were sent in time and {told}")


def _late(lag_ns: float | None) -> str:
    return f"{digits((lag_ns or 0) / 1e6)} ms or more"


def busiest_share(times_ns: Sequence[int], idle_us: Sequence[int]) -> float | None:
    """Share of its busiest window in which a CPU was busy, from its idle time at these times; None without a window."""
    shares, first = [], 0
    for last, time_ns in enumerate(times_ns):
        while first + 1 < last and time_ns - times_ns[first + 1] >= WINDOW_NS:
            first += 1
        span_ns = time_ns - times_ns[first]
        if span_ns >= WINDOW_NS:
            shares.append(1 - 1e3 * (idle_us[last] - idle_us[first]) / span_ns)
    return min(1.0, max(shares)) if shares else None


DISTURBING = ("load", "other load", "other trials", "steal")
"""What passes: with it the figures are of a disturbed machine, and it is better to calibrate again."""


def disturbed_by(found: Certificate) -> list[str]:
    """What was seen to disturb the calibration itself."""
    return [each.what for each in found.disturbances if each.what in DISTURBING and each.grade == "note"]


def _cited_floor(found: Certificate, path: str) -> Floor | None:
    """The first over UDP."""
    of_path = (each for each in found.floors if each.path == path)
    return next((each for each in of_path if each.transport == "udp" and each.p99_us), None)


def key_figures(found: Certificate) -> dict[str, Scalar]:
    """The figures that a run cites, each with its unit last and with what it was taken under."""
    disturbed = disturbed_by(found)
    figures: dict[str, Scalar] = {"disturbed_by": ", ".join(disturbed)} if disturbed else {}
    if floor := _cited_floor(found, VETH):
        assert floor.p99_us is not None
        figures |= {"floor_transport": floor.transport, "floor_rate_qps": floor.rate_qps}
        figures |= {"floor_p99_us": round(floor.p99_us.median, 1), "floor_trials": floor.p99_us.trials}
        if floor.lag_p99_us is not None:
            figures["lag_p99_us"] = round(floor.lag_p99_us.median, 1)
    if found.nic_path is not None:
        figures["nic_path"] = found.nic_path.label
        if (floor := _cited_floor(found, found.nic_path.label)) and floor.p99_us:
            figures |= {"nic_floor_rate_qps": floor.rate_qps, "nic_floor_p99_us": round(floor.p99_us.median, 1)}
    for each in found.capacities:
        if each.qps is not None:
            name = f"{each.transport}_{'connections_per_s' if each.new_connections else 'capacity_qps'}"
            figures[name] = round(each.qps.median)
    # A real server's where there is one: it comes after the reflector.
    if noise := next((each for each in reversed(found.noise) if each.values), None):
        figures |= {"noise_server": noise.server, "noise_metric": noise.metric, "noise_trials": len(noise.values)}
        for smallest in noise.smallest:
            if smallest.percent is not None:
                figures[f"smallest_of_{smallest.repeats}_percent"] = smallest.percent
    return figures
