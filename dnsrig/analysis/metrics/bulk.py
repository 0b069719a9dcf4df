"""What one connection brought over a path, and what its sender's congestion control saw of it.

The second kind is of the connection that carried most in a trial, over the emulated path where it has one, in every
trial whose sockets were listed (``sockets.arrow``).
"""

from __future__ import annotations

import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial

CLOSED_FROM_NS = 1_000_000_000
"""So long without a look there was nothing to look at: ten times their distance."""


def is_bulk(trial: Trial) -> bool:
    """Whether one connection brought what it could in a fixed time."""
    return trial.record.spec.main_metric == "throughput_kbytes_per_s" and bool(trial.transfer)


def median_of_sender(trial: Trial, column: str) -> float | None:
    """Over the listings during `measure`, 0.2 s apart; those without a value left out."""
    flow = sockets.largest(trial)
    if flow is None:
        return None
    value = flow.sent.filter(pl.col(column) > 0)[column].median()
    return float(value) if isinstance(value, int | float) else None


@metric(title="throughput", unit="kB/s", better="higher", order=10, at_limit=is_bulk)
def throughput_kbytes_per_s(trial: Trial) -> float | None:
    """Bytes (10^3 a kB) that the instrument `transfer` had read from its TCP connections when it last looked at them
    (every 0.1 s), without TCP and IP headers, divided by the time from its start to that look: the handshake, the
    query's round trip and slow start are part of it. Where the last look was more than 1 s before its end, because no
    connection was open any more, the time goes on to the end."""
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
    """Median over the listings of sockets during `measure` (every 0.2 s) of the smoothed round-trip time (RFC 6298) of
    the connection that carried most (over the emulated path, where there is one), as its sender sees it: with what
    waits in queues."""
    us = median_of_sender(trial, "rtt_us")
    return None if us is None else us / 1e3


@metric(title="congestion window of the sender, median", unit="segments", better="neither", order=34)
def cwnd_segments(trial: Trial) -> float | None:
    """Median over the listings of sockets during `measure` (every 0.2 s) of the congestion window of the connection
    that carried most (over the emulated path, where there is one), at its sender."""
    return median_of_sender(trial, "cwnd")


@metric(title="retransmitted", unit="%", better="lower", order=34)
def retransmitted_percent(trial: Trial) -> float | None:
    """Segments that the sender of the connection that carried most (over the emulated path, where there is one) sent
    again, of all segments with data that it sent, from the beginning of the connection to the last listing of sockets
    during `measure`."""
    flow = sockets.largest(trial)
    sent = int(flow.sent["sent_data_segments"][-1]) if flow else 0
    return None if flow is None or not sent else 100 * int(flow.sent["retransmissions"][-1]) / sent
