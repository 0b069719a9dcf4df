"""The transfers of one trial over time, one line a zone: what waited, what was received, and what was tried again."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from dnsrig.analysis import transfers
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _look, _transfers
from dnsrig.report.figures import visible
from dnsrig.rundir import Finding

TITLE = "Transfers of a trial over time"
ORDER = 31
METRICS = ("transfer_p50_ms", "transfer_p99_ms", "transfer_retries", "transfer_failures")

TRAPS = ("delayed-ack", "transfer-limit", "small-behind-large", "cut-transfer")
"""Whose findings can be seen here."""
MOST_TRIALS = 6
MOST_LINES = 150
"""Zones drawn of a trial, sampled evenly in the order in which they were asked for."""
MOST_COLOURS = 6
"""Connections told apart by colour."""
HEIGHT_PX = 300
LEAST_PX = 1.6
"""Of a line: what took less time is drawn so long, to be seen at all."""


def applies(run: Run) -> bool:
    return any(not trial.transfers.is_empty() for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "One line a zone, the first asked for on top: thin and grey from the query to the first message, thick from there to the last;"
        " a cross ends an attempt that failed, and what follows on the same line is the next attempt. Stairs of thick lines: one"
        " after the other. Long grey lines of the same length: a full window, each waiting for those before it. Gaps of one width on every"
        " line: a timer. Many that end at one moment: they waited for one large zone."
        f" Of a trial with more than {MOST_LINES} zones as many are drawn, evenly chosen; of the run the median repeat of"
        f" at most {MOST_TRIALS} variants, those in which a trap found something first."
    )


def explain(run: Run, findings: Sequence[Finding]) -> list[Drawing]:
    trials = _transfers.chosen(run, findings, TRAPS, MOST_TRIALS)
    return [
        _transfers.drawing(run, trial, _look.stack([_panel(trial)]), findings, open=number == 0)
        for number, trial in enumerate(trials)
    ]


def lines(trial: Trial) -> pl.DataFrame:
    """The attempts drawn, in ms since the instrument began.

    Columns: line (0 on top), asked, first (null: no message came), last, shown (where a thick line ends, so that it is seen), failed,
    colour.
    """
    begun_ns = _transfers.begun_ns(trial)
    of_zone = ["secondary", "zone"]
    order = trial.transfers.group_by(of_zone).agg(pl.col("asked_ns").min()).sort("asked_ns", *of_zone)
    step = max(1, -(-order.height // MOST_LINES))
    sampled = order.gather_every(step).with_row_index("line").select("line", *of_zone)
    rows = trial.transfers.join(sampled, on=of_zone).sort("line", "asked_ns")
    ms = {name: (pl.col(f"{name}_ns") - begun_ns) / 1e6 for name in ("asked", "first", "last")}
    came = pl.col("first_ns") > 0
    rows = rows.with_columns(
        asked=ms["asked"],
        first=pl.when(came).then(ms["first"]),
        last=pl.when(pl.col("last_ns") > 0).then(ms["last"]).otherwise(ms["asked"]),
        failed=~transfers.good(),
        colour=_colour(rows),
    )
    end = _look.extent(rows["last"])[1]
    least = LEAST_PX * end / _look.WIDTH
    return rows.select(
        "line", "asked", "first", "last", "failed", "colour", shown=pl.max_horizontal("last", pl.col("first") + least)
    )


def _colour(rows: pl.DataFrame) -> pl.Expr:
    """The connection where there are few, or else how it ended."""
    if rows["connection"].n_unique() <= MOST_COLOURS:
        return pl.format("connection {}", "connection")
    return pl.col("outcome").map_elements(visible, return_dtype=pl.String)


def _panel(trial: Trial) -> alt.LayerChart | alt.FacetChart:
    rows = lines(trial)
    count = int(transfers.number(rows["line"].max())) + 1
    end_ms = _look.extent(rows["last"])[1]
    unit, factor = ("seconds", 1e3) if end_ms >= 10_000 else ("ms", 1.0)
    rows = rows.with_columns((pl.col(name) / factor).round_sig_figs(6) for name in ("asked", "first", "last", "shown"))
    names = sorted(set(rows["colour"]), key=lambda name: (name != "done", len(name), name))
    legend = alt.Legend(symbolType="stroke", symbolSize=300) if len(names) > 1 else None
    scale = alt.Scale(domain=[0, max(end_ms / factor, 1e-3)], nice=False)
    x = alt.X(
        "asked:Q", title=f"{unit} since the instrument began", scale=scale, axis=alt.Axis(tickCount=10, format=",~r")
    )
    y = alt.Y(
        "line:Q", title=_y_title(trial, count), scale=alt.Scale(domain=[-1, count], reverse=True), axis=_no_labels()
    )
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=legend)
    thick = min(4.0, max(1.4, 0.75 * HEIGHT_PX / count))
    base = alt.Chart(rows)
    waited = rows.with_columns(until=pl.coalesce("first", "last"))
    layers = [
        alt.Chart(waited).mark_rule(color=_look.MUTED, strokeWidth=0.6, opacity=0.7).encode(x, alt.X2("until:Q"), y),
        base.transform_filter("isValid(datum.first)")
        .mark_rule(strokeWidth=thick)
        .encode(alt.X("first:Q"), alt.X2("shown:Q"), y, colour),
        base.transform_filter(alt.datum.failed)
        .mark_point(shape="cross", angle=45, size=26, filled=True, color=_look.INK, opacity=0.8)
        .encode(alt.X("last:Q"), y),
    ]
    return alt.layer(*layers).properties(width=_look.WIDTH, height=HEIGHT_PX)


def _no_labels() -> alt.Axis:
    return alt.Axis(labels=False, ticks=False, grid=False, domain=False)


def _y_title(trial: Trial, drawn: int) -> str:
    zones = trial.transfers.select("secondary", "zone").n_unique()
    return "zones" if zones <= drawn else f"{drawn:,} of {zones:,} zones"
