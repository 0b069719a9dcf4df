"""A resolver's own counters during `measure`, and its traffic with authorities: a world, or primaries."""

from __future__ import annotations

import polars as pl

from dnsrig.metrics import metric
from dnsrig.runs import upstream
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.trial import Trial


def growth(trial: Trial, counter: str) -> tuple[float, float] | None:
    """Growth of a counter from the first sample to the last, and the seconds between them; None without two samples, or
    if the server was restarted between them."""
    rows = trial.rows(STATISTICS)
    rows = rows.filter(rows["counter"] == counter).sort("time_ns")
    if rows.height < 2:
        return None
    grown = float(rows["value"][-1]) - float(rows["value"][0])
    return (grown, (rows["time_ns"][-1] - rows["time_ns"][0]) / 1e9) if grown >= 0 else None


def _share(trial: Trial, part: str, *whole: str) -> float | None:
    counted, of = growth(trial, part), [growth(trial, name) for name in whole]
    if counted is None or any(one is None for one in of):
        return None
    total = sum(one[0] for one in of if one is not None)
    return counted[0] / total if total else None


@metric(title="cache hits", unit="%", better="higher", order=16)
def cache_hits_percent(trial: Trial) -> float | None:
    """Share of the clients' queries that the resolver answered without an upstream query, from its own counters, from
    just before `measure` to just after it."""
    share = _share(trial, "cache_hits", "cache_hits", "cache_misses")
    return None if share is None else 100 * share


@metric(title="upstream queries per client query", unit="", better="lower", order=16)
def upstream_a_query(trial: Trial) -> float | None:
    """Number of queries that the resolver sent to authorities, divided by the number of client queries, from its own
    counters, from just before `measure` to just after it."""
    return _share(trial, "upstream_queries", "client_queries")


@metric(title="upstream timeouts", unit="%", better="lower", order=17)
def upstream_timeouts_percent(trial: Trial) -> float | None:
    """Share of the resolver's queries to authorities that had no answer in time, from its own counters. Unbound does
    not count them."""
    share = _share(trial, "upstream_timeouts", "upstream_queries")
    return None if share is None else 100 * share


@metric(title="validations", unit="1/s", better="neither", order=17)
def validations_per_s(trial: Trial) -> float | None:
    """DNSSEC validations a second, from the resolver's own counters, from just before `measure` to just after it. Units
    differ, so do not compare kinds of resolvers: BIND `ValAttempt`, Unbound `num.valops`, PowerDNS
    `dnssec-validations`. Knot Resolver has no such counter."""
    grown = growth(trial, "validations")
    return None if grown is None or not grown[1] else grown[0] / grown[1]


def _authorities(trial: Trial) -> list[str]:
    """The hosts that a resolver under test asks; empty for other servers."""
    spec = trial.record.spec
    is_resolver = spec.hosts[trial.subject].role == "resolver"
    return [*spec.primaries, *([spec.world] if spec.world else [])] if is_resolver else []


@metric(title="upstream packets", unit="packets", better="lower", order=33)
def upstream_packets(trial: Trial) -> float | None:
    """Packets between resolver and authorities as the resolver's interface counts them, both directions, during
    `measure`, to within 0.2 s at either end."""
    return trial.links_growth(_authorities(trial), "rx_packets", "tx_packets")


@metric(title="upstream volume", unit="B", better="lower", order=33)
def upstream_bytes(trial: Trial) -> float | None:
    """Bytes of all frames between resolver and authorities, both directions, Ethernet headers included, during
    `measure`, to within 0.2 s at either end."""
    return trial.links_growth(_authorities(trial), "rx_bytes", "tx_bytes")


@metric(title="upstream queries over TCP", unit="%", better="neither", order=34)
def upstream_tcp_percent(trial: Trial) -> float | None:
    """Share of the queries answered by a world during `measure` that were over TCP, to within a second at either
    end."""
    return upstream.percent(upstream.queries(trial), pl.col("transport") == "tcp")
