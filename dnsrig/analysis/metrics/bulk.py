"""What one connection brought over a path, and what its sender's congestion control saw of it.

The second kind is of the connection that carried most in a trial, in every trial whose sockets were listed (``sockets.arrow``).
"""

from __future__ import annotations

import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.metrics import metric, pull
from dnsrig.analysis.read import Trial


def is_bulk(trial: Trial) -> bool:
    """Whether one connection brought what it could in a fixed time."""
    return trial.record.spec.procedure == "bulk" and bool(trial.transfer)


def median_of_sender(trial: Trial, column: str) -> float | None:
    """Over the listings during `measure`, 0.2 s apart; those without a value left out."""
    flow = sockets.largest(trial)
    if flow is None:
        return None
    value = flow.sent.filter(pl.col(column) > 0)[column].median()
    return float(value) if isinstance(value, int | float) else None


@metric(title="throughput", unit="kB/s", better="higher", order=10, at_limit=is_bulk)
def throughput_kbytes_per_s(trial: Trial) -> float | None:
    """Octets of DNS messages that the instrument `transfer` received (10^3 a kB; no TCP, TLS or IP headers), divided by its time from
    start to end: the TCP handshake, the query's round trip and slow start are part of it."""
    octets_per_s = pull.per_second(trial, "octets") if is_bulk(trial) else None
    return None if octets_per_s is None else octets_per_s / 1e3


@metric(title="round trip of the sender, median", unit="ms", better="lower", order=34)
def rtt_ms(trial: Trial) -> float | None:
    """Median over the listings of sockets during `measure` (every 0.2 s) of the smoothed round-trip time (RFC 6298) of the
    connection that carried most, as its sender sees it: with what waits in queues."""
    us = median_of_sender(trial, "rtt_us")
    return None if us is None else us / 1e3


@metric(title="congestion window of the sender, median", unit="segments", better="neither", order=34)
def cwnd_segments(trial: Trial) -> float | None:
    """Median over the listings of sockets during `measure` (every 0.2 s) of the congestion window of the connection that carried most, at
    its sender."""
    return median_of_sender(trial, "cwnd")


@metric(title="retransmitted", unit="%", better="lower", order=34)
def retransmitted_percent(trial: Trial) -> float | None:
    """Segments that the sender of the connection that carried most sent again, of all segments with data that it sent, from the beginning of the connection
    to the last listing of sockets during `measure`."""
    flow = sockets.largest(trial)
    sent = int(flow.sent["sent_data_segments"][-1]) if flow else 0
    return None if flow is None or not sent else 100 * int(flow.sent["retransmissions"][-1]) / sent
