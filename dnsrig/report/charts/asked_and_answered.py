"""What clients of a replay asked and what they were answered, over time: whether the server keeps up in each burst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from dnsrig.report.charts import _latency, _split
from dnsrig.report.charts._over_time import MOST_POINTS, Panel, Picture, TimeSeries
from dnsrig.rundir import Finding
from dnsrig.runs import flood
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

ASKED, ANSWERED = "queries sent", "answers"
BIN_NS = 10_000_000
"""Time between rows."""


def pictures(run: Run, findings: Sequence[Finding]) -> Iterable[Picture]:
    """The median repeat of each variant that replays; that with the slowest answers (p99) in sight."""
    replays = [
        trial
        for variant in run.manifest.variants
        if (trial := _split.median(filter(_replayed, run.of_variant(variant.id)))) is not None
    ]
    replays.sort(key=lambda trial: trial.value("p99_ms") or 0, reverse=True)
    for number, trial in enumerate(replays[: _latency.MOST_VARIANTS]):
        variant = trial.record.spec.variant
        yield Picture(
            variant.id,
            [
                Panel("Queries and answers a second", rates(trial)),
                Panel("Sent and not answered yet", waiting(trial)),
                *_flood(trial),
            ],
            [ASKED, ANSWERED],
            "the first query was due",
            variant.label if number == 0 else "",
            "" if number == 0 else variant.label,
        )


def _replayed(trial: Trial) -> bool:
    return trial.record.outcome == "done" and trial.load.model == "stream" and not trial.answers.is_empty()


def rates(trial: Trial) -> pl.DataFrame:
    """Queries sent and answers a second, each over as many bins as can be drawn. Columns line, time_s, value."""
    rows = _binned(trial)
    wide_s = (rows["time_s"][1] - rows["time_s"][0]) if rows.height > 1 else BIN_NS / 1e9
    return pl.concat(
        rows.select(pl.lit(line).alias("line"), "time_s", value=pl.col(name) / wide_s)
        for line, name in ((ASKED, "sent"), (ANSWERED, "answered"))
    )


def waiting(trial: Trial) -> pl.DataFrame:
    """How many were under way at the end of each stretch, and how many had been given up by then."""
    rows = _binned(trial)
    open_ = rows["sent"].cum_sum().cast(pl.Int64) - rows["answered"].cum_sum().cast(pl.Int64)
    return rows.select(pl.lit("").alias("line"), "time_s", value=open_)


def _flood(trial: Trial) -> list[Panel]:
    """When others flooded the server, and with how much; nothing where nobody did."""
    load = flood.of(trial)
    if not load.ran or load.span_s <= 0:
        return []
    begin_s, end_s = ((at_ns - trial.load.start_ns) / 1e9 for at_ns in (load.start_ns, load.end_ns))
    times = [0.0, begin_s, end_s, trial.load.span_s]
    values = [0.0, load.sent / load.span_s, 0.0, 0.0]
    return [Panel("Queries of the flood a second", pl.DataFrame({"line": [""] * 4, "time_s": times, "value": values}))]


def _binned(trial: Trial) -> pl.DataFrame:
    """``answers`` in even stretches without gaps: columns time_s (begin), sent, answered."""
    start_ns = trial.load.start_ns
    bins = trial.answers.select(
        "sent", "answered", number=(pl.col("time_ns") - start_ns).clip(lower_bound=0) // BIN_NS
    ).sort("number")
    last = int(bins["number"].max() or 0)  # type: ignore[arg-type]  # a column of whole numbers
    each = -(-(last + 1) // MOST_POINTS)
    every = pl.DataFrame({"stretch": pl.Series(range(last // each + 1), dtype=pl.Int64)})
    summed = bins.group_by(stretch=(pl.col("number") // each).cast(pl.Int64)).agg(pl.col("sent", "answered").sum())
    filled = every.join(summed, on="stretch", how="left").fill_null(0).sort("stretch")
    return filled.select("sent", "answered", time_s=pl.col("stretch") * each * BIN_NS / 1e9)


CHARTS = [
    TimeSeries(
        id="asked-and-answered",
        title="Does the server keep up with each burst of queries?",
        order=7,
        shows=("answered_qps", "unanswered_share_percent"),
        pictures=pictures,
        says="Above: the queries of the replay when they were sent, and the answers when they came. Below: the number of queries that wait for an answer."
        " Where the upper lines part and the lower line rises, the server does not keep up with a burst. Queries that were never answered keep the lower"
        " line from falling back. An answer after the time-out counts here, too.",
    )
]
