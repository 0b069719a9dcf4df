"""Zones wait for round trips: workers × RTT decide the result, while the CPU idles.

A secondary that transfers only a few zones at a time over a long path mostly waits: the time is zones × round trips a
zone × RTT / workers. The signs: zones become ready at a rate at which each costs a worker one to ten round trips, as
many as handshakes and questions take, and the CPU is mostly idle. The result then shows the path and a setting, not the
speed of the server.
"""

from __future__ import annotations

from dnsrig.metrics.transfer_load import is_transfer_load
from dnsrig.prediction import path, round_trips, secondaries
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell
from dnsrig.traps.server_rate_limit import FEWEST_ZONES, IDLE_BELOW, RATE_TOLERANCE, cpu_share, steady_rate

GROUP = "the network and TCP"
OUTCOMES = COMPARED
TITLE = "workers × RTT decide the result"
SOURCE = "S3: L. Peltan, time ≈ zones × round trips × RTT / workers: doubling the workers halves it (2025)"
WEIGHT = "explains"
FAR_S = 5e-3
"""Shortest round trip that matters; shorter ones are hidden by work."""
FEWEST_ROUND_TRIPS, MOST_ROUND_TRIPS = 0.8, 10.0
"""Range of round trips for each zone: with fewer, workers did not wait; S3's most expensive case, over TLS, took
8.7."""
POLICIES_THAT_WAIT = ("one", "reused")


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    if not (trial.is_cold_start or _is_by_instrument(trial)):
        return None
    rtt_s = path.rtt_s(trial)
    if rtt_s is None:
        return cannot_tell("The round trip between the primary and the secondary was not measured.")
    if rtt_s < FAR_S or record.spec.dataset.zones < FEWEST_ZONES:
        return CLEAR
    workers = _workers(trial)
    if workers is None:
        return cannot_tell("The number of concurrent transfers of this server with these settings is not known.")
    rate, busy = _rate(trial), cpu_share(trial)
    if rate is None or busy is None:
        return cannot_tell(
            "There are no samples of CPU time, or too few zones became ready to compare a rate with round trips."
        )
    rtt_s = path.rtt_s(trial, path.PACKETS_A_ZONE * rate) or rtt_s
    each = round_trips.implied(1 / rate, 1, rtt_s, workers)
    waits = FEWEST_ROUND_TRIPS <= each <= MOST_ROUND_TRIPS and busy < IDLE_BELOW
    if not waits or _has_own_limit(trial, rate):
        return CLEAR
    return _found(trial, rate, busy, rtt_s, workers, each)


def _is_by_instrument(trial: Trial) -> bool:
    """Whether the instrument `transfer` was the secondary, with a policy under which it waits."""
    return is_transfer_load(trial) and trial.record.spec.options.get("policy") in POLICIES_THAT_WAIT


def _workers(trial: Trial) -> int | None:
    spec = trial.record.spec
    if _is_by_instrument(trial):
        return int(spec.options.get("connections", 1)) * int(spec.options.get("secondaries", 1))
    host = spec.hosts[spec.subject]
    return secondaries.workers_of(host.server.kind, host.settings) if host.server else None


def _rate(trial: Trial) -> float | None:
    """Zones a second."""
    if not _is_by_instrument(trial):
        return steady_rate(trial)
    done, elapsed_ns = trial.transfer.get("done"), trial.transfer.get("elapsed_ns")
    return float(done) / elapsed_ns * 1e9 if done and elapsed_ns else None


def _has_own_limit(trial: Trial, rate: float) -> bool:
    """Whether a setting allows exactly this rate: then `server-rate-limit` reports it."""
    limits = trial.server.limits if trial.server else []
    return any(limit.zones_per_s and abs(rate / limit.zones_per_s - 1) <= RATE_TOLERANCE for limit in limits)


def _found(trial: Trial, rate: float, busy: float, rtt_s: float, workers: int, each: float) -> Conclusion:
    return Conclusion(
        "found",
        summary=f"{rate:.1f} zones a second with {workers:,} workers and a round trip of {1e3 * rtt_s:.1f} ms are {each:.1f} round trips for each zone, "
        f"with the CPU {busy:.0%} busy. The time is zones × round trips × RTT / workers, not the server's speed.",
        evidence={
            "zones_per_s": round(rate, 2),
            "workers": workers,
            "rtt_ms": round(1e3 * rtt_s, 2),
            "round_trips_a_zone": round(each, 2),
            "cpu_busy_percent": round(100 * busy, 1),
        },
        series=(f"{trial.subject}/cgroup/cpu_usage_us",),
        metrics=(trial.record.spec.main_metric, "time_per_zone_ms", "zones_per_s"),
        remedy=_remedy(trial),
    )


def _remedy(trial: Trial) -> str:
    if _is_by_instrument(trial):
        return "Pipeline the queries (options.policy = pipelined), or use more connections (options.connections)."
    server = trial.server
    secondary = secondaries.known().get(server.server.kind) if server else None
    setting = secondary.workers_setting if secondary else "the number of transfers at once"
    return f"Raise {setting}: twice as many take half the time. Or use a secondary that pipelines."
