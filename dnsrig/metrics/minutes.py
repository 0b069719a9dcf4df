"""The first and the last minute of a replay on a resolver, as compared by S5, or its halves if it is shorter than two
minutes."""

from __future__ import annotations

import polars as pl

from dnsrig.metrics import metric
from dnsrig.metrics.latency import timeout_ms
from dnsrig.rundir import OBSERVER
from dnsrig.runs import minutes
from dnsrig.runs.minutes import Which
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.trial import Trial


def _p99_ms(trial: Trial, which: Which) -> float | None:
    found, most = minutes.latencies(trial, which), timeout_ms(trial)
    value = found.percentile(99) if found else None
    return None if value is None else value / 1e6 if most is None else min(value / 1e6, most)


@metric(title="latency in the first minute or half, p99", unit="ms", better="lower", order=11, ceiling=timeout_ms)
def first_minute_p99_ms(trial: Trial) -> float | None:
    """99 % of the queries that were due in the first minute (or half) of the replay were answered within this time,
    counted from the moment at which each was due. “≥”: the client's timeout."""
    return _p99_ms(trial, "first")


@metric(title="latency in the last minute or half, p99", unit="ms", better="lower", order=11, ceiling=timeout_ms)
def last_minute_p99_ms(trial: Trial) -> float | None:
    """Like `first_minute_p99_ms`, for the last minute (or half)."""
    return _p99_ms(trial, "last")


@metric(title="cache hits in the first minute or half", unit="%", better="higher", order=16)
def first_minute_hits_percent(trial: Trial) -> float | None:
    """Like `cache_hits_percent`, from the resolver's first counters to those nearest to the end of the first minute (or
    half) of the replay."""
    found = minutes.stretch(trial, "first")
    rows = trial.rows(STATISTICS)
    if found is None or rows.is_empty():
        return None
    hits, misses = (
        _grown_by(rows.filter(rows["counter"] == name), found[1]) for name in ("cache_hits", "cache_misses")
    )
    return None if hits is None or misses is None or hits + misses <= 0 else 100 * hits / (hits + misses)


def _grown_by(rows: pl.DataFrame, time_ns: int) -> float | None:
    """From the first sample of a counter to the one nearest to ``time_ns``."""
    samples = sorted(zip(rows["time_ns"].to_list(), rows["value"].to_list()))
    if len(samples) < 2:
        return None
    return float(min(samples, key=lambda sample: abs(sample[0] - time_ns))[1] - samples[0][1])


def _cpu_percent(trial: Trial, which: Which) -> float | None:
    used_us = minutes.growth_per_s(trial, which, trial.subject, "cgroup", "cpu_usage_us")
    return None if used_us is None else used_us / 1e4


@metric(title="CPU in the first minute or half", unit="% of a core", better="lower", order=21)
def first_minute_cpu_percent(trial: Trial) -> float | None:
    """CPU time of the resolver's cgroup in the first minute (or half) of the replay, divided by that time."""
    return _cpu_percent(trial, "first")


@metric(title="CPU in the last minute or half", unit="% of a core", better="lower", order=21)
def last_minute_cpu_percent(trial: Trial) -> float | None:
    """Like `first_minute_cpu_percent`, for the last minute (or half)."""
    return _cpu_percent(trial, "last")


@metric(title="memory with the kernel's in the last minute or half", unit="B", better="lower", order=23)
def last_minute_memory_bytes(trial: Trial) -> float | None:
    """Anonymous and kernel memory of the resolver's cgroup, the mean of the samples in the last minute (or half) of the
    replay; no file cache, so not the cache of Knot Resolver, which is a file."""
    return minutes.mean(trial, "last", "cgroup", "memory_anonymous_bytes", "memory_kernel_bytes")


@metric(title="TCP sockets in the last minute or half", unit="sockets", better="lower", order=31)
def last_minute_tcp_sockets(trial: Trial) -> float | None:
    """TCP sockets in use on the resolver's host (/proc/net/sockstat), the mean of the samples in the last minute (or
    half) of the replay."""
    return minutes.mean(trial, "last", "sockets", "tcp_inuse", "tcp6_inuse")


@metric(title="TIME_WAIT in the last minute or half", unit="sockets", better="lower", order=31)
def last_minute_time_wait(trial: Trial) -> float | None:
    """Sockets in TIME_WAIT on the resolver's host, the mean of the samples in the last minute (or half) of the
    replay."""
    return minutes.mean(trial, "last", "sockets", "tcp_time_wait")


@metric(title="UDP sockets in the last minute or half", unit="sockets", better="neither", order=31)
def last_minute_udp_sockets(trial: Trial) -> float | None:
    """UDP sockets in use on the resolver's host, the mean of the samples in the last minute (or half) of the replay."""
    return minutes.mean(trial, "last", "sockets", "udp_inuse", "udp6_inuse")


@metric(title="packets sent in the last minute or half", unit="packets/s", better="lower", order=33)
def last_minute_packets_per_s(trial: Trial) -> float | None:
    """Packets that the resolver's interfaces sent to clients and to authorities in the last minute (or half) of the
    replay, a second."""
    spec = trial.record.spec
    others = [end for link in spec.links for end in link.ends if trial.subject in link.ends and end != trial.subject]
    interfaces = dict.fromkeys(spec.interface(trial.subject, name) for name in others if name != OBSERVER)
    sent = [minutes.growth_per_s(trial, "last", trial.subject, interface, "tx_packets") for interface in interfaces]
    return None if not sent or None in sent else sum(value for value in sent if value is not None)
