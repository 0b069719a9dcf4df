"""What the sender's side of the connection that carried most knew over time: a line a variant, a panel a value."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _look, _over_time, _split
from dnsrig.rundir import Variant

TITLE = "The sender's TCP over time"
ORDER = 12
METRICS = ("rtt_ms", "cwnd_segments", "retransmitted_percent")

OUTCOMES = ("done", "timeout", "invalid")
FEWEST_LISTINGS = 5
"""Of a connection, below which there is no course of time."""
MOST_LINES = 8
"""In one picture; more variants make more pictures."""
TITLES = {
    "acked_kb_per_s": "Acknowledged, kB/s (log scale)",
    "rtt_ms": "Round trip as the kernel smooths it, ms",
    "cwnd": "Congestion window, segments (log scale)",
    "retransmitted_percent": "Sent again so far, % of segments with data",
}
LOGARITHMIC = ("acked_kb_per_s", "cwnd")
SMOOTHED = 5
"""Listings over which the rate is taken: of one alone it is nought or a burst where a round trip takes longer than a listing."""


def applies(run: Run) -> bool:
    return any(True for _ in _chosen(run))


def caption(run: Run) -> str:
    return (
        "TCP_INFO of the socket that sent most, every 0.2 s; of each variant the median repeat. A congestion control that takes each loss for a full"
        " path keeps its window, and with it the rate, at the floor; one that does not, or that models the path, shows a window near bandwidth ×"
        " delay. A round trip well above the path's own is a queue that the sender fills."
    )


def draw(run: Run) -> list[Drawing]:
    chosen = list(_chosen(run))
    groups = [chosen[i : i + MOST_LINES] for i in range(0, len(chosen), MOST_LINES)]
    return [Drawing(f"{number + 1}", _look.stack(_panels(run, group), 8)) for number, group in enumerate(groups)]


def _chosen(run: Run) -> Iterable[tuple[Variant, Trial]]:
    """The median repeat of each variant that has a course of time."""
    for variant in run.manifest.variants:
        lasting = [trial for trial in run.of_variant(variant.id) if trial.record.outcome in OUTCOMES and _lasts(trial)]
        median = _split.median(lasting)
        if median is not None:
            yield variant, median


def _lasts(trial: Trial) -> bool:
    flow = sockets.largest(trial)
    return flow is not None and flow.sent.height >= FEWEST_LISTINGS


def course(trial: Trial) -> pl.DataFrame:
    """Columns time_s (since the start of the measurement) and those of ``TITLES``; empty without a flow."""
    flow, phase = sockets.largest(trial), trial.measure
    empty = pl.DataFrame(schema=dict.fromkeys(["time_s", *TITLES], pl.Float64))
    if flow is None or phase is None:
        return empty
    seconds = pl.col("time_ns").diff(SMOOTHED) / 1e9
    grown = pl.col("acked_octets").cast(pl.Int64).diff(SMOOTHED) / 1e3
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


def _panels(run: Run, group: list[tuple[Variant, Trial]]) -> list[alt.Chart]:
    axes = _split.varying_axes(run)
    courses = [course(trial).with_columns(variant=pl.lit(_split.label(variant, axes))) for variant, trial in group]
    rows = pl.concat(courses)
    names = [_split.label(variant, axes) for variant, _ in group]
    since = "seconds since the start of the measurement"
    return _over_time.panels(
        rows, "variant", TITLES, since=since, always=tuple(TITLES), names=names, logarithmic=LOGARITHMIC
    )
