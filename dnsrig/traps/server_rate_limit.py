"""A limit of the server itself decides the result, while its CPU idles.

As a secondary, BIND sends 20 SOA queries a second (serial-query-rate), so 10,000 zones take 500 s on any machine. The
signs: zones become ready at exactly the rate that a setting allows, and the server's CPU is mostly idle.
"""

from __future__ import annotations

import polars as pl

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
OUTCOMES = COMPARED
TITLE = "a limit of the server decides the result"
SOURCE = "BIND 9 Administrator Reference Manual, serial-query-rate"
WEIGHT = "explains"
RATE_TOLERANCE = 0.15
"""Largest relative difference between the rate and the rate that the setting allows."""
IDLE_BELOW = 0.5
"""Share of one CPU below which the server was waiting rather than working."""
FEWEST_ZONES = 50
"""Least number of zones for a meaningful rate: BIND, for one, starts ten zones every half second."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    server = trial.server
    if server is None:
        return None
    limits = [limit for limit in server.limits if limit.zones_per_s]
    if not limits:
        return CLEAR
    if record.spec.dataset.zones < FEWEST_ZONES:
        return cannot_tell(f"With fewer than {FEWEST_ZONES} zones there is no rate to compare with a limit.")
    rate, busy = steady_rate(trial), cpu_share(trial)
    if rate is None or busy is None:
        return cannot_tell("There are no samples of CPU time, or too few zones became ready to compute a rate.")
    for limit in limits:
        assert limit.zones_per_s is not None
        if abs(rate / limit.zones_per_s - 1) <= RATE_TOLERANCE and busy < IDLE_BELOW:
            by_default = ", its default," if limit.default else ""
            return Conclusion(
                "found",
                summary=f"{server.server.label} finished {rate:.1f} zones a second with its CPU {busy:.0%} busy: its setting "
                f"{limit.setting} = {limit.value}{by_default} allows {limit.zones_per_s:g}.",
                evidence={
                    "zones_per_s": round(rate, 2),
                    "allowed_zones_per_s": limit.zones_per_s,
                    "cpu_busy_percent": round(100 * busy, 1),
                    "setting": limit.setting,
                    "value": limit.value,
                },
                series=(f"{trial.subject}/cgroup/cpu_usage_us",),
                metrics=(record.spec.main_metric, "time_per_zone_ms", "zones_per_s"),
                remedy=limit.remedy,
            )
    return CLEAR


def steady_rate(trial: Trial) -> float | None:
    """Zones a second between the first and the last tenth of the zones: without start and tail.

    It is the slope of a straight line through the moments at which the zones became ready, by least squares. Servers
    start zones in groups, so the first and the last moment alone would be wrong by up to a group.
    """
    seen = trial.zones["seen_ns"].drop_nulls().sort()
    if len(seen) < FEWEST_ZONES:
        return None
    middle = seen[len(seen) // 10 : len(seen) * 9 // 10]
    numbers = pl.Series(range(len(middle)), dtype=pl.Float64)
    numbers, moments_s = numbers - numbers.mean(), (middle - middle[0]) / 1e9
    s_a_zone = (numbers * moments_s).sum() / (numbers**2).sum()
    return 1 / s_a_zone if s_a_zone > 0 else None


def cpu_share(trial: Trial) -> float | None:
    """CPU time of the server under test over `measure`, as a share of one CPU."""
    rows = trial.during_measure(trial.subject, "cgroup", "cpu_usage_us")
    if rows.height < 2:
        return None
    span_us = (rows["time_ns"][-1] - rows["time_ns"][0]) / 1000
    return float((rows["value"][-1] - rows["value"][0]) / span_us) if span_us > 0 else None
