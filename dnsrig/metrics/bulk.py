"""Throughput of one connection over a path, and the state of its sender's congestion control.

The state belongs to the largest connection of a trial, over the emulated path if there is one, in every trial with
listed sockets (``sockets.arrow``).
"""

from __future__ import annotations

import polars as pl

from dnsrig.metrics import metric
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial

CLOSED_FROM_NS = 1_000_000_000
"""Time without a look after which no connection was open: ten times the distance between looks."""


def is_bulk(trial: Trial) -> bool:
    """Whether one connection transferred what it could in a fixed time."""
    return trial.record.spec.main_metric == "throughput_kbytes_per_s" and bool(trial.transfer)


def median_of_sender(trial: Trial, column: str) -> float | None:
    """Median over the listings during `measure`, 0.2 s apart, without listings that lack the value."""
    flow = sockets.largest(trial)
    if flow is None:
        return None
    value = flow.sent.filter(pl.col(column) > 0)[column].median()
    return float(value) if isinstance(value, int | float) else None


@metric(title="throughput", unit="kB/s", better="higher", order=10, at_limit=is_bulk)
def throughput_kbytes_per_s(trial: Trial) -> float | None:
    """Bytes (10^3 to a kB) that the instrument `transfer` had read from its TCP connections at its last look at them
    (every 0.1 s), without TCP and IP headers, divided by the time from its start to that look. This includes the
    handshake, the query's round trip and slow start. If the last look was more than 1 s before the end, because no
    connection was open any more, the time extends to the end."""
    start_ns, looks = trial.transfer.get("start_ns"), trial.tcp_info
    if not is_bulk(trial) or start_ns is None or looks.is_empty():
        return None
    last = looks.sort("time_ns").group_by("connection").last()
    nbytes = int(last["received_bytes"].sum()) - int(last["unread_bytes"].cast(pl.Int64).sum())
    elapsed_ns = int(last["time_ns"].sort()[-1]) - int(start_ns)
    whole_ns = int(trial.transfer["elapsed_ns"])
    if whole_ns - elapsed_ns > CLOSED_FROM_NS:
        elapsed_ns = whole_ns
    return 1e6 * nbytes / elapsed_ns if elapsed_ns > 0 else None


@metric(title="round trip of the sender, median", unit="ms", better="lower", order=34)
def rtt_ms(trial: Trial) -> float | None:
    """Smoothed round-trip time (RFC 6298) at the sender of the largest connection (over the emulated path, if there is
    one), including waits in queues: median over the listings of sockets during `measure` (every 0.2 s)."""
    us = median_of_sender(trial, "rtt_us")
    return None if us is None else us / 1e3


@metric(title="congestion window of the sender, median", unit="segments", better="neither", order=34)
def cwnd_segments(trial: Trial) -> float | None:
    """Congestion window at the sender of the largest connection (over the emulated path, if there is one): median over
    the listings of sockets during `measure` (every 0.2 s)."""
    return median_of_sender(trial, "cwnd")


@metric(title="retransmitted", unit="%", better="lower", order=34)
def retransmitted_percent(trial: Trial) -> float | None:
    """Share of the data segments that the sender of the largest connection (over the emulated path, if there is one)
    sent again, from the beginning of the connection to the last listing of sockets during `measure`."""
    flow = sockets.largest(trial)
    sent = int(flow.sent["sent_data_segments"][-1]) if flow else 0
    return None if flow is None or not sent else 100 * int(flow.sent["retransmissions"][-1]) / sent
