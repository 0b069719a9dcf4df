"""The row files of the instrument `transfer`, as the engine writes them: their columns, in its own order.

``transfers.arrow`` has a row an attempt to transfer a zone, ``connections.arrow`` a row a connection, ``tcp-info.arrow`` a row a
connection and interval (of at most 256 connections). Times are CLOCK_MONOTONIC ns; 0: it never came to that.
"""

from __future__ import annotations

import polars as pl

Schema = dict[str, type[pl.DataType]]

TRANSFERS: Schema = {
    "zone": pl.String,
    "secondary": pl.UInt32,
    "connection": pl.UInt32,
    "attempt": pl.UInt16,
    "asked": pl.String,
    "answered": pl.String,
    "asked_ns": pl.Int64,
    "first_ns": pl.Int64,
    "last_ns": pl.Int64,
    "octets": pl.UInt64,
    "messages": pl.UInt32,
    "records": pl.UInt32,
    "serial": pl.UInt32,
    "pause_max_ns": pl.Int64,
    "foreign_messages": pl.UInt32,
    "outcome": pl.String,
}
CONNECTIONS: Schema = {
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
    "octets": pl.UInt64,
    "messages": pl.UInt32,
}
TCP_INFO: Schema = {
    "time_ns": pl.Int64,
    "connection": pl.UInt32,
    "rtt_us": pl.UInt32,
    "rttvar_us": pl.UInt32,
    "cwnd": pl.UInt32,
    "retransmissions": pl.UInt32,
    "lost": pl.UInt32,
    "delivery_rate_octets_per_s": pl.UInt64,
    "received_octets": pl.UInt64,
    "sent_octets": pl.UInt64,
    "unread_octets": pl.UInt32,
}
