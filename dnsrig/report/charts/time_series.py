"""What a report draws as values over time, with `_over_time`: an entry of ``CHARTS`` each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import polars as pl

from dnsrig.report.charts import _look, _over_time, _split, _transfers
from dnsrig.report.charts._over_time import Panel, Picture, TimeSeries
from dnsrig.report.names import varying_axes
from dnsrig.rundir import Finding
from dnsrig.runs import sockets
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

FEWEST_SAMPLES = 5
"""Samples of a connection below which there is no course of time."""
MOST_TRIALS = 4
MOST_CONNECTIONS = 8
"""Drawn of a trial: those that received most."""
MOST_LINES = 8
"""In one picture of senders; more variants make more pictures."""
SMOOTHED = 5
"""Listings over which a rate is taken: of one alone it is nought or a burst where a round trip takes longer than a
listing."""
SENDER = {
    "acked_kb_per_s": "Acknowledged, kB/s (log scale)",
    "rtt_ms": "Round trip as the kernel smooths it, ms",
    "cwnd": "Congestion window, segments (log scale)",
    "retransmitted_percent": "Sent again so far, % of segments with data",
}
LOGARITHMIC = ("acked_kb_per_s", "cwnd")
RECEIVER = {
    "received_mb_per_s": "Received, MB/s",
    "rtt_ms": "Round trip as the kernel smooths it, ms",
    "cwnd": "Congestion window of the instrument's side, segments",
    "delivery_mb_per_s": "Delivery rate of the instrument's side, MB/s",
    "unread_kb": "Received and not yet read by the instrument, kB",
    "retransmissions": "Retransmissions of the instrument's side, in all",
}
ALWAYS = ("received_mb_per_s", "rtt_ms", "cwnd")
"""Columns of the receiver that are always drawn; the others only if they are not all zero."""


def senders(run: Run, findings: Sequence[Finding]) -> Iterable[Picture]:
    """A line a variant: its median repeat of those with a course of time."""
    axes = varying_axes(run)
    lasting = (
        (_split.label(variant, axes), _split.median(filter(_sends, run.of_variant(variant.id))))
        for variant in run.manifest.variants
    )
    chosen = [(label, trial) for label, trial in lasting if trial is not None]
    for start in range(0, len(chosen), MOST_LINES):
        group = chosen[start : start + MOST_LINES]
        rows = pl.concat([sender(trial).with_columns(line=pl.lit(label)) for label, trial in group])
        panels = [Panel(title, _of(rows, name), name in LOGARITHMIC) for name, title in SENDER.items()]
        yield Picture(
            f"{start // MOST_LINES + 1}", panels, [label for label, _ in group], "the start of the measurement"
        )


def _sends(trial: Trial) -> bool:
    flow = sockets.largest(trial) if trial.record.outcome in _transfers.OUTCOMES else None
    return flow is not None and flow.sent.height >= FEWEST_SAMPLES


def sender(trial: Trial) -> pl.DataFrame:
    """The sender's course: time_s (since the start of the measurement) and the columns of ``SENDER``; empty without a
    flow."""
    flow, phase = sockets.largest(trial), trial.measure
    empty = pl.DataFrame(schema=dict.fromkeys(["time_s", *SENDER], pl.Float64))
    if flow is None or phase is None:
        return empty
    seconds = pl.col("time_ns").diff(SMOOTHED) / 1e9
    grown = pl.col("acked_bytes").cast(pl.Int64).diff(SMOOTHED) / 1e3
    rows = flow.sent.with_columns(line=pl.lit("all"), rate=grown / seconds)
    sent = pl.when(pl.col("sent_data_segments") > 0).then(pl.col("sent_data_segments"))
    return (
        _over_time.thinned(rows, "line")
        .select(
            time_s=(pl.col("time_ns") - phase.start.monotonic_ns) / 1e9,
            acked_kb_per_s="rate",
            rtt_ms=pl.when(pl.col("rtt_us") > 0).then(pl.col("rtt_us")) / 1e3,
            cwnd=pl.col("cwnd").cast(pl.Float64),
            retransmitted_percent=100 * pl.col("retransmissions") / sent,
        )
        .with_columns(pl.all().round_sig_figs(5))
    )


def receivers(run: Run, findings: Sequence[Finding]) -> Iterable[Picture]:
    """A line for each connection of one trial, for the worst variants."""
    trials = filter(_receives, _transfers.chosen(run, findings, (), len(run.manifest.variants)))
    for number, trial in enumerate(itertools.islice(trials, MOST_TRIALS)):
        rows, spec = receiver(trial), trial.record.spec
        panels = [
            Panel(title, _of(rows, name))
            for name, title in RECEIVER.items()
            if name in ALWAYS or _look.extent(rows[name])[1] > 0
        ]
        yield Picture(
            f"{spec.variant.id}-{spec.repeat:02d}",
            panels,
            list(dict.fromkeys(rows["line"])),
            "the instrument began",
            _transfers.title(trial, findings),
            spec.variant.label,
            open=number == 0,
        )


def _receives(trial: Trial) -> bool:
    counts = trial.tcp_info["connection"].value_counts()["count"]
    return trial.record.outcome in _transfers.OUTCOMES and bool((counts >= FEWEST_SAMPLES).any())


def receiver(trial: Trial) -> pl.DataFrame:
    """The course of each connection drawn, thinned: line, time_s (since the instrument began) and the columns of
    ``RECEIVER``."""
    begun_ns = _transfers.begun_ns(trial)
    received = trial.tcp_info.group_by("connection").agg(pl.col("received_bytes").max(), pl.len())
    drawn = received.filter(pl.col("len") >= FEWEST_SAMPLES).sort(
        ["received_bytes", "connection"], descending=[True, False]
    )
    rows = trial.tcp_info.join(drawn.head(MOST_CONNECTIONS).select("connection"), on="connection").sort(
        "connection", "time_ns"
    )
    return (
        _over_time.thinned(rows, "connection")
        .select(
            line=pl.format("connection {}", "connection"),
            time_s=(pl.col("time_ns") - begun_ns) / 1e9,
            received_mb_per_s=_over_time.per_s("received_bytes", "connection") / 1e6,
            rtt_ms=pl.col("rtt_us") / 1e3,
            cwnd=pl.col("cwnd").cast(pl.Float64),
            delivery_mb_per_s=pl.col("delivery_rate_bytes_per_s") / 1e6,
            unread_kb=pl.col("unread_bytes") / 1e3,
            retransmissions=pl.col("retransmissions").cast(pl.Float64),
        )
        .with_columns(pl.exclude("line").round_sig_figs(5))
    )


def _of(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.select("line", "time_s", value=name)


CHARTS = [
    TimeSeries(
        id="sender-over-time",
        title="What limited the sender's TCP over time?",
        order=12,
        shows=("rtt_ms", "cwnd_segments", "retransmitted_percent"),
        pictures=senders,
        says="TCP_INFO of the socket that sent most, every 0.2 s, in the median repeat of each variant. If a congestion control takes each loss for a"
        " full path, its window stays near the minimum, and so does the rate. Otherwise the window is near bandwidth × delay. If the round trip is"
        " much longer than the path's own, the sender fills a queue.",
    ),
    TimeSeries(
        id="tcp-over-time",
        title="What did the TCP connections do over time?",
        order=33,
        shows=("transferred_mb_per_s", "retransmissions"),
        pictures=receivers,
        says=f"TCP_INFO of the instrument's sockets: one line for each connection, at most the {MOST_CONNECTIONS} that received most. The instrument receives,"
        " so its own congestion window and delivery rate concern its queries and mean little. The rate at which the primary may send is the rate"
        " received: it rises to a plateau, and falls when the primary's congestion control meets loss. If much is received and not yet read, the"
        " instrument is slow, not the path.",
    ),
]
