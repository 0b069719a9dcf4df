"""The transfers of one trial over time, one line a zone: what waited, what was received, and what was tried again."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from dnsrig.report.charts import Drawing, _look, _transfers
from dnsrig.report.figures import visible
from dnsrig.rundir import Finding
from dnsrig.runs import transfers
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

NAME = "transfer-waterfall"
TITLE = "When was each zone transferred?"
ORDER = 31
METRICS = ("transfer_p50_ms", "transfer_p99_ms", "transfer_retries", "transfer_failures")

MOST_TRIALS = 6
MOST_LINES = 150
"""Zones drawn of a trial, sampled evenly in the order in which they were asked for."""
FIRST_ZONES = 40
"""Drawn once more, by themselves."""
MOST_ATTEMPTS = 3_000
"""Drawn of a trial, the first ones of each zone: an instrument that repeats transfers the same zone without end."""
MOST_COLOURS = 6
"""Connections that have a colour each."""
HEIGHT_PX = 240
OF_ZONE = ("secondary", "zone")
TIMES = ("asked", "first", "last", "waited", "shown")
LEAST_PX = 1.6
"""Least length of a line: what took less time is drawn with this length, so that it can be seen."""


def applies(run: Run) -> bool:
    return any(not transfers.of(trial).is_empty() for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "Each zone is a line, the first zone asked for on top. The line is thin and grey from the query to the first message, and thick from there"
        " to the last message. A cross ends a failed attempt; the next attempt follows on the same line. Above: the whole trial, evenly sampled"
        f" if it has more than {MOST_LINES} zones. Below: its beginning, the first {FIRST_ZONES} zones. Stairs: one transfer after the other. Long grey"
        " lines of the same length: a full window, in which each zone waits for those before it. Thick lines or gaps of the same length, such as"
        " 40 ms: a timer. Many lines that begin at the same moment: they waited for one large zone. The charts show the median repeat of"
        f" at most {MOST_TRIALS} variants, those with findings first."
    )


def explain(run: Run, findings: Sequence[Finding]) -> list[Drawing]:
    drawings: list[Drawing] = []
    shown = [trap.id for trap in all_traps().values() if trap.chart == NAME]
    for trial in _transfers.chosen(run, findings, shown, MOST_TRIALS):
        spec, title = trial.record.spec, _transfers.title(trial, findings)
        name, picture = f"{spec.variant.id}-{spec.repeat:02d}", _look.stack(_panels(trial))
        drawings.append(Drawing(name, picture, title, spec.variant.label, open=not drawings))
    return drawings


def sampled(trial: Trial) -> pl.DataFrame:
    """The zones of the whole picture. Columns: line (0 on top), secondary, zone."""
    order = _zones(trial)
    return order.gather_every(max(1, -(-order.height // MOST_LINES))).with_row_index("line")


def first(trial: Trial) -> pl.DataFrame:
    """The zones of its beginning; none where the whole shows them as well."""
    order = _zones(trial)
    return order.head(FIRST_ZONES if order.height > FIRST_ZONES else 0).with_row_index("line")


def _zones(trial: Trial) -> pl.DataFrame:
    """In the order in which they were first asked for."""
    order = transfers.of(trial).group_by(OF_ZONE).agg(pl.col("asked_ns").min())
    return order.sort("asked_ns", *OF_ZONE).select(OF_ZONE)


def lines(trial: Trial, zones: pl.DataFrame) -> pl.DataFrame:
    """The attempts at ``zones`` (as `sampled` and `first` give them), in ms since the instrument began.

    Columns: line, asked, first (null: no message came), last, failed, attempt, colour.
    """
    begun_ns = _transfers.begun_ns(trial)
    rows = transfers.of(trial).join(zones, on=OF_ZONE).sort("line", "asked_ns")
    rows = rows.filter(pl.int_range(pl.len()).over("line") < max(1, MOST_ATTEMPTS // max(1, zones.height)))
    ms = {name: (pl.col(f"{name}_ns") - begun_ns) / 1e6 for name in ("asked", "first", "last")}
    return rows.select(
        "line",
        "attempt",
        asked=ms["asked"],
        first=pl.when(pl.col("first_ns") > 0).then(ms["first"]),
        last=pl.when(pl.col("last_ns") > 0).then(ms["last"]).otherwise(ms["asked"]),
        failed=~transfers.good(),
        colour=_colour(transfers.of(trial)),
    )


def _colour(rows: pl.DataFrame) -> pl.Expr:
    """How it ended; or the connection, where there are a few."""
    if 1 < rows["connection"].n_unique() <= MOST_COLOURS:
        none = pl.col("connection") == transfers.NO_CONNECTION
        return pl.when(none).then(pl.lit("no connection")).otherwise(pl.format("connection {}", "connection"))
    return pl.col("outcome").map_elements(visible, return_dtype=pl.String)


def _panels(trial: Trial) -> list[alt.LayerChart | alt.FacetChart]:
    whole, beginning = lines(trial, sampled(trial)), lines(trial, first(trial))
    names = sorted(set(whole["colour"]) | set(beginning["colour"]), key=lambda name: (name != "done", len(name), name))
    begin_ms = min(0.0, _look.extent(whole["asked"])[0])
    panels = [_panel(whole, names, (begin_ms, _look.extent(whole["last"])[1]), _y_title(trial))]
    if not beginning.is_empty():
        # Later attempts may lie far away: the beginning is over when those first made are.
        tried = beginning.filter(pl.col("attempt") == pl.col("attempt").min())
        until_ms = _look.extent(tried["last"])[1]
        panels.append(_panel(beginning, names, (begin_ms, until_ms), f"the first {FIRST_ZONES} of them"))
    return panels


def _panel(
    rows: pl.DataFrame, names: list[str], span_ms: tuple[float, float], title: str
) -> alt.LayerChart | alt.FacetChart:
    count = int(transfers.number(rows["line"].max())) + 1
    unit, factor = ("seconds", 1e3) if span_ms[1] >= 10_000 else ("ms", 1.0)
    rows = _fitted(rows, span_ms).with_columns((pl.col(TIMES) / factor).round_sig_figs(6))
    legend = alt.Legend(symbolType="stroke", symbolSize=300, columns=3) if len(names) > 1 else None
    scale = alt.Scale(domain=[span_ms[0] / factor, max(span_ms[1] / factor, 1e-3)], nice=False)
    axis = alt.Axis(tickCount=10, format=",~r")
    x = alt.X("asked:Q", title=f"{unit} since the instrument began", scale=scale, axis=axis)
    y = alt.Y("line:Q", title=title, scale=alt.Scale(domain=[-1, count], reverse=True), axis=_no_labels())
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=legend)
    thick = min(4.0, max(1.4, 0.75 * HEIGHT_PX / count))
    base = alt.Chart(rows)
    layers = [
        base.mark_rule(color=_look.MUTED, strokeWidth=0.6, opacity=0.7).encode(x, alt.X2("waited:Q"), y),
        base.transform_filter("isValid(datum.first)")
        .mark_rule(strokeWidth=thick)
        .encode(alt.X("first:Q"), alt.X2("shown:Q"), y, colour),
        base.transform_filter(alt.datum.failed)
        .mark_point(shape="cross", angle=45, size=9 * thick, filled=True, color=_look.INK, opacity=0.7)
        .encode(alt.X("last:Q"), y),
    ]
    return alt.layer(*layers).properties(width=_look.WIDTH, height=HEIGHT_PX)


def _fitted(rows: pl.DataFrame, span_ms: tuple[float, float]) -> pl.DataFrame:
    """Cut to what the axis shows, with waited (where a grey line ends) and shown (where a thick one does, so that it is
    seen)."""
    end_ms = span_ms[1]
    least_ms = LEAST_PX * (end_ms - span_ms[0]) / _look.WIDTH
    rows = rows.filter(pl.col("asked") <= end_ms).with_columns(
        failed=pl.col("failed") & (pl.col("last") <= end_ms),
        first=pl.when(pl.col("first") <= end_ms).then(pl.col("first")),
        waited=pl.min_horizontal(pl.coalesce("first", "last"), pl.lit(end_ms)),
        last=pl.min_horizontal("last", pl.lit(end_ms)),
    )
    return rows.with_columns(shown=pl.max_horizontal("last", pl.col("first") + least_ms))


def _no_labels() -> alt.Axis:
    return alt.Axis(labels=False, ticks=False, grid=False, domain=False)


def _y_title(trial: Trial) -> str:
    zones, drawn = _zones(trial).height, sampled(trial).height
    return "zones" if zones <= drawn else f"{drawn:,} of {zones:,} zones"
