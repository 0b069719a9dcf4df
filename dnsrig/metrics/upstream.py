"""Traffic between a resolver and its authorities: a world, or primaries."""

from __future__ import annotations

import polars as pl

from dnsrig.metrics import metric
from dnsrig.runs import upstream
from dnsrig.runs.trial import Trial


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
