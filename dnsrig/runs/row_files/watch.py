"""What `watch` sampled of hosts, and what the kernel said of their TCP connections."""

from __future__ import annotations

import polars as pl

from dnsrig.runs.row_files import RowFile

SAMPLES = RowFile(
    "samples.arrow",
    {"host": pl.String, "source": pl.String, "metric": pl.String, "time_ns": pl.Int64, "value": pl.Int64},
)
SOCKETS = RowFile(
    "sockets.arrow",
    {
        "time_ns": pl.Int64,
        "host": pl.String,
        "local": pl.String,
        "remote": pl.String,
        "state": pl.String,
        "congestion": pl.String,
        "cwnd": pl.UInt32,
        "ssthresh": pl.UInt32,
        "rtt_us": pl.UInt32,
        "rttvar_us": pl.UInt32,
        "min_rtt_us": pl.UInt32,
        "retransmissions": pl.UInt32,
        "lost": pl.UInt32,
        "unacked": pl.UInt32,
        "sent_data_segments": pl.UInt32,
        "send_queue_bytes": pl.UInt32,
        "receive_queue_bytes": pl.UInt32,
        "send_buffer_bytes": pl.UInt32,
        "receive_buffer_bytes": pl.UInt32,
        "mss_bytes": pl.UInt32,
        "delivery_rate_bytes_per_s": pl.UInt64,
        "acked_bytes": pl.UInt64,
        "received_bytes": pl.UInt64,
        "busy_us": pl.UInt64,
        "receive_window_limited_us": pl.UInt64,
        "send_buffer_limited_us": pl.UInt64,
        "sacks": pl.Boolean,
        "timestamps": pl.Boolean,
        "window_scaling": pl.Boolean,
    },
    later=("send_buffer_bytes", "receive_buffer_bytes"),
)
"""One row a socket and interval, of procedures that want it: what the kernel said (sock_diag(7), TCP_INFO of tcp(7)),
every 0.2 s, of at most 256 sockets a host, both ends of a connection where both hosts are watched. Counters are those
of the connection since its beginning; what the kernel has not measured yet, or does not have, is 0. Most of it is about
what this end sends.

``local``, ``remote``: ADDRESS:PORT; ``cwnd``, ``ssthresh``, ``sent_data_segments``: segments; ``send_queue_bytes``: not
acknowledged; ``receive_queue_bytes``: not read; ``send_buffer_bytes``, ``receive_buffer_bytes``: what the buffers may
take now; ``busy_us``, and of it ``receive_window_limited_us`` and ``send_buffer_limited_us``; ``sacks``,
``timestamps``, ``window_scaling``: agreed on by both ends."""
