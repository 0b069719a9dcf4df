"""What the kernel knew of the connections of one trial, over time: received octets, round trip, window, retransmissions."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _look, _over_time, _transfers
from dnsrig.rundir import Finding

TITLE = "TCP over time"
ORDER = 33
METRICS = ("transferred_mb_per_s", "retransmissions")

FEWEST_SAMPLES = 5
"""Of a connection, below which there is no course of time."""
MOST_TRIALS = 4
MOST_CONNECTIONS = 8
"""Drawn of a trial: those that received most."""
TITLES = {
    "received_mb_per_s": "Received, MB/s",
    "rtt_ms": "Round trip as the kernel smooths it, ms",
    "cwnd": "Congestion window of the instrument's side, segments",
    "delivery_mb_per_s": "Delivery rate of the instrument's side, MB/s",
    "unread_kb": "Received and not yet read by the instrument, kB",
    "retransmissions": "Retransmissions of the instrument's side, in all",
}
ALWAYS = ("received_mb_per_s", "rtt_ms", "cwnd")
"""The others only where they are not all zero."""


def applies(run: Run) -> bool:
    return any(_lasting(trial) for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "TCP_INFO of the instrument's sockets, a line a connection, at most the"
        f" {MOST_CONNECTIONS} that received most. The instrument receives: its own congestion window and delivery rate are those of its"
        " queries and say little; how fast the primary may send shows in what is received, which rises to a plateau and falls"
        " back where the primary's congestion control met loss. What is not yet read tells a slow instrument from a slow path."
    )


def explain(run: Run, findings: Sequence[Finding]) -> list[Drawing]:
    trials = [trial for trial in _transfers.chosen(run, findings, (), len(run.manifest.variants)) if _lasting(trial)]
    return [
        _transfers.drawing(run, trial, _look.stack(_panels(trial), 8), findings, open=number == 0)
        for number, trial in enumerate(trials[:MOST_TRIALS])
    ]


def _lasting(trial: Trial) -> bool:
    counts = trial.tcp_info["connection"].value_counts()["count"]
    return trial.record.outcome in _transfers.OUTCOMES and bool((counts >= FEWEST_SAMPLES).any())


def course(trial: Trial) -> pl.DataFrame:
    """Of each connection drawn, thinned: columns connection, time_s (since the instrument began) and those of ``TITLES``."""
    begun_ns = _transfers.begun_ns(trial)
    received = trial.tcp_info.group_by("connection").agg(pl.col("received_octets").max(), pl.len())
    drawn = received.filter(pl.col("len") >= FEWEST_SAMPLES).sort(
        ["received_octets", "connection"], descending=[True, False]
    )
    rows = trial.tcp_info.join(drawn.head(MOST_CONNECTIONS).select("connection"), on="connection").sort(
        "connection", "time_ns"
    )
    return (
        _over_time.thinned(rows, "connection")
        .select(
            connection=pl.format("connection {}", "connection"),
            time_s=(pl.col("time_ns") - begun_ns) / 1e9,
            received_mb_per_s=_over_time.per_s("received_octets", "connection") / 1e6,
            rtt_ms=pl.col("rtt_us") / 1e3,
            cwnd=pl.col("cwnd").cast(pl.Float64),
            delivery_mb_per_s=pl.col("delivery_rate_octets_per_s") / 1e6,
            unread_kb=pl.col("unread_octets") / 1e3,
            retransmissions=pl.col("retransmissions").cast(pl.Float64),
        )
        .with_columns(pl.exclude("connection").round_sig_figs(5))
    )


def _panels(trial: Trial) -> list[alt.Chart]:
    return _over_time.panels(
        course(trial), "connection", TITLES, since="seconds since the instrument began", always=ALWAYS
    )
