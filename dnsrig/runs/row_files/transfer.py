"""What `transfer` saw of transfers and of its connections.

A time of 0: it never came to that.
"""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

TRANSFERS = RowFile(
    "transfers.arrow",
    {
        "zone": pl.String,
        "secondary": pl.UInt32,
        "connection": pl.UInt32,
        "attempt": pl.UInt16,
        "asked": pl.String,
        "answered": pl.String,
        "asked_ns": pl.Int64,
        "first_ns": pl.Int64,
        "last_ns": pl.Int64,
        "bytes": pl.UInt64,
        "messages": pl.UInt32,
        "records": pl.UInt32,
        "serial": pl.UInt32,
        "pause_max_ns": pl.Int64,
        "foreign_messages": pl.UInt32,
        "outcome": pl.String,
    },
)
"""One row an attempt to transfer a zone. ``attempt``: from 1; ``asked``: soa, axfr, ixfr; ``answered``: none, soa,
axfr, ixfr, up-to-date; ``pause_max_ns``: longest between two of its messages; ``foreign_messages``: of other transfers
between its first and its last; ``outcome``: done, up-to-date or a failure. Among failures are: timed-out (nothing
came), stalled (records, and then nothing), no-progress (messages, but no record), too-long (records to the end of its
time), abandoned (its connection was closed because of another transfer)."""
CONNECTIONS = RowFile(
    "connections.arrow",
    {
        "connection": pl.UInt32,
        "secondary": pl.UInt32,
        "source": pl.String,
        "begun_ns": pl.Int64,
        "established_ns": pl.Int64,
        "closed_ns": pl.Int64,
        "handshake": pl.String,
        "ended": pl.String,
        "asked": pl.UInt32,
        "done": pl.UInt32,
        "bytes": pl.UInt64,
        "messages": pl.UInt32,
    },
)
"""One row a connection. ``source``: ADDRESS:PORT; ``handshake``: none, full, resumed; ``ended``: ours, closed, reset,
refused, no-port, timed-out, tls, used-up."""
TCP_INFO = RowFile(
    "tcp-info.arrow",
    {
        "time_ns": pl.Int64,
        "connection": pl.UInt32,
        "rtt_us": pl.UInt32,
        "rttvar_us": pl.UInt32,
        "cwnd": pl.UInt32,
        "retransmissions": pl.UInt32,
        "lost": pl.UInt32,
        "delivery_rate_bytes_per_s": pl.UInt64,
        "received_bytes": pl.UInt64,
        "sent_bytes": pl.UInt64,
        "unread_bytes": pl.UInt32,
    },
)
"""What the kernel reported of connections (TCP_INFO, tcp(7)), one row a connection and interval, of at most 256
connections. ``cwnd``: segments."""
