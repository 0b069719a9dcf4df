"""Clients by the mean latency of their queries: whether some of them are served worse than others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from dnsrig.metrics.latency import timeout_ms
from dnsrig.report.charts import Drawing, _latency, _look, _split
from dnsrig.rundir import Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "Are some clients served more slowly than others?"
ORDER = 5
METRICS = ("silent_clients_percent",)
FEWEST_CLIENTS = 20
"""Below, there is no share of clients to speak of."""
POINTS = 200
"""Points of a line."""


def applies(run: Run) -> bool:
    return bool(_chosen(run))


def caption(run: Run) -> str:
    return (
        "The line shows which share of the clients had at most this mean latency. Each client counts once,"
        " however many queries it sends. A query without an answer counts as the time-out. The chart shows the median repeat of each variant."
        " If a line rises at its right end, some clients wait while others do not: look at their queries, or at a"
        " limit for each client. Many clients ask once or twice, so the line is not the distribution of queries."
    )


def draw(run: Run) -> list[Drawing]:
    chosen = _chosen(run)
    rows = {variant.id: curve(trial) for variant, trial in chosen}
    everything = pl.concat(rows.values())
    panels = _latency.panels(run, [variant for variant, _ in chosen])
    at_ends = _latency.named_at_ends(run, panels.values())
    built = [_panel(run, variants, rows, everything, label, at_ends=at_ends) for label, variants in panels.items()]
    pairs = [alt.hconcat(*built[i : i + 2], spacing=24) for i in range(0, len(built), 2)]
    return _split.screens(pairs, _latency.HALF_PX)


def curve(trial: Trial) -> pl.DataFrame:
    """Columns percent (of the clients) and mean_ms, both ascending."""
    each = (
        trial.clients.group_by("client")
        .agg(queries=(pl.col("answered") + pl.col("unanswered")).sum(), sum_ns=pl.col("sum_ns").sum())
        .filter(pl.col("queries") > 0)
        .select(mean_ns=pl.col("sum_ns") / pl.col("queries"))
        .sort("mean_ns")
    )
    count, most = each.height, timeout_ms(trial)
    ranks = sorted({round(point * (count - 1) / (POINTS - 1)) for point in range(POINTS)}) if count else []
    values = each["mean_ns"].gather(ranks)
    return pl.DataFrame(
        {
            "percent": [100 * (rank + 1) / count for rank in ranks],
            "mean_ms": [_latency.shown_ms(int(value), most) for value in values],
        },
        schema={"percent": pl.Float64, "mean_ms": pl.Float64},
    )


def _chosen(run: Run) -> list[tuple[Variant, Trial]]:
    """The median repeat of each variant with a replay."""
    found = []
    for variant in run.manifest.variants:
        replays = (trial for trial in run.of_variant(variant.id) if _has_clients(trial))
        if (trial := _split.median(replays)) is not None:
            found.append((variant, trial))
    return found


def _has_clients(trial: Trial) -> bool:
    replayed = trial.record.outcome == "done" and trial.load.model == "stream"
    return replayed and trial.clients["client"].n_unique() >= FEWEST_CLIENTS


def _panel(
    run: Run,
    variants: Sequence[Variant],
    rows: dict[str, pl.DataFrame],
    everything: pl.DataFrame,
    label: str,
    *,
    at_ends: bool,
) -> alt.LayerChart | alt.FacetChart:
    """All panels have the axes of the whole."""
    wide = label == _split.ONLY
    width, height = (_look.WIDTH, 280) if wide else ((_look.WIDTH - 60) // 2, 210)
    low, high = _look.extent(everything["mean_ms"])
    title, scale, axis = _latency.milliseconds([low, high], "mean latency of a client, ms")
    colour, dash = _latency.encodings(run, rows, legend=not at_ends)
    x = alt.X("percent:Q", title="share of clients, %", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=5))
    y = alt.Y("mean_ms:Q", title=title, scale=scale, axis=axis)
    ends = {_latency.name_of(run, v): float(rows[v.id]["mean_ms"][-1]) for v in variants}
    names = _latency.at_ends(run, variants, ends, y, (width, height)) if at_ends else []
    lines = alt.Chart(pl.concat(_named(run, variants, rows))).mark_line(strokeWidth=1.8).encode(x, y, colour, dash)
    return alt.layer(lines, *names).properties(width=width, height=height, title="" if wide else _look.heading(label))


def _named(run: Run, variants: Sequence[Variant], rows: dict[str, pl.DataFrame]) -> Iterable[pl.DataFrame]:
    return (rows[v.id].with_columns(colour=pl.lit(_latency.name_of(run, v))) for v in variants)
