"""Clients by the mean latency of their queries: whether some of them are served worse than others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from dnsrig.analysis.metrics.latency import timeout_ms
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _latency, _look, _split
from dnsrig.rundir import Variant

TITLE = "Clients by latency"
ORDER = 5
METRICS = ("silent_clients_percent",)
FEWEST_CLIENTS = 20
"""Below, there is no share of clients to speak of."""
POINTS = 200
"""Of a line."""


def applies(run: Run) -> bool:
    return bool(_chosen(run))


def caption(run: Run) -> str:
    return (
        "Of the clients of a replay, so many percent had a mean latency of no more than so much; each client counts once,"
        " however much it asks, and a query without an answer counts as the time-out. Of each variant the median repeat."
        " A line that rises at its right end is of clients that wait while others do not: look at what they ask, or at a"
        " limit for each client. Many clients ask once or twice, so the line is no distribution of queries."
    )


def draw(run: Run) -> list[Drawing]:
    chosen = _chosen(run)
    rows = {variant.id: curve(trial) for variant, trial in chosen}
    everything = pl.concat(rows.values())
    panels = _latency.panels(run, [variant for variant, _ in chosen])
    built = [_panel(run, variants, rows, everything, label) for label, variants in panels.items()]
    pairs = [alt.hconcat(*built[i : i + 2], spacing=24) for i in range(0, len(built), 2)]
    return [Drawing("all", _look.stack(pairs))]


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
    run: Run, variants: Sequence[Variant], rows: dict[str, pl.DataFrame], everything: pl.DataFrame, label: str
) -> alt.Chart:
    """All panels have the axes of the whole."""
    wide = label == _split.ONLY
    low, high = _look.extent(everything["mean_ms"])
    title, scale, axis = _latency.milliseconds([low, high], "mean latency of a client, ms")
    colour, dash = _latency.encodings(run, rows)
    chart: alt.Chart = (
        alt.Chart(pl.concat(_named(run, variants, rows)))
        .mark_line(strokeWidth=1.8)
        .encode(
            alt.X("percent:Q", title="clients, %", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=5)),
            alt.Y("mean_ms:Q", title=title, scale=scale, axis=axis),
            colour,
            dash,
        )
        .properties(
            width=_look.WIDTH if wide else (_look.WIDTH - 60) // 2,
            height=280 if wide else 210,
            title="" if wide else _look.heading(label),
        )
    )
    return chart


def _named(run: Run, variants: Sequence[Variant], rows: dict[str, pl.DataFrame]) -> Iterable[pl.DataFrame]:
    return (rows[v.id].with_columns(colour=pl.lit(_latency.name_of(run, v))) for v in variants)
