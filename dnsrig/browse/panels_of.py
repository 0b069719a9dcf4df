"""The panels of a trial that do not come from its samples: phases, latencies, events of logs, zones, the busiest
connection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.browse.thin import Thinned
from dnsrig.report.charts import _latency, _look, _series, latency_heat_map
from dnsrig.report.charts._over_time import Panel
from dnsrig.report.figures import visible
from dnsrig.runs import sockets
from dnsrig.runs.latency import Interval
from dnsrig.runs.trial import Trial

PERCENTS = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
MOST_EVENTS = 2_000
HEAT_PX = 120
SHADES = (0.16, 1.0)


@dataclass(frozen=True)
class Range:
    """A stretch of time: CLOCK_MONOTONIC ns, drawn as seconds since ``zero_ns``."""

    zero_ns: int
    start_ns: int
    end_ns: int

    @property
    def extent(self) -> list[float]:
        return [(self.start_ns - self.zero_ns) / 1e9, (self.end_ns - self.zero_ns) / 1e9]

    def seconds(self, rows: pl.DataFrame) -> pl.DataFrame:
        """``rows`` within it, with time_s in the place of time_ns."""
        inside = rows.filter(pl.col("time_ns").is_between(self.start_ns, self.end_ns))
        return inside.with_columns(time_s=((pl.col("time_ns") - self.zero_ns) / 1e9).round(6)).drop("time_ns")


def seen(trial: Trial, within: Range) -> Iterator[Panel]:
    """Zones done, and the connection that carried most."""
    zones = _series.zones_done(trial)
    if not zones.is_empty():
        low, high = within.extent
        yield Panel("Zones done", zones.filter(pl.col("time_s").is_between(low, high)).with_columns(line=pl.lit("")))
    flow = sockets.largest(trial)
    if flow is not None:
        names = {
            "rtt_us": ("Round trip of the busiest connection, ms", 1e-3),
            "cwnd": ("Its congestion window, segments", 1.0),
        }
        for name, (title, factor) in names.items():
            thinned = Thinned(within.start_ns, within.end_ns)
            thinned.add(flow.sent.select(pl.lit("").alias("line"), "time_ns", value=pl.col(name) * factor))
            if not thinned.rows().is_empty():
                yield Panel(title, within.seconds(thinned.rows()))


def phases(trial: Trial, within: Range) -> alt.Chart:
    """When each phase of the trial began and ended."""
    zero = within.zero_ns
    rows = pl.DataFrame(
        [
            {"phase": p.name, "time_s": (p.start.monotonic_ns - zero) / 1e9, "end_s": (p.end.monotonic_ns - zero) / 1e9}
            for p in trial.record.phases
        ]
    )
    names = list(rows["phase"].unique(maintain_order=True))
    drawn: alt.Chart = (
        alt.Chart(rows)
        .mark_bar(height=11, color=_look.MUTED, opacity=0.7, clip=True)
        .encode(
            _x(within),
            alt.X2("end_s:Q"),
            alt.Y("phase:N", sort=names, title=None, axis=alt.Axis(minExtent=42, grid=False)),
        )
        .properties(width=_look.WIDTH, height=alt.Step(16), title=_look.heading("Phases"))
    )
    return drawn


def heat_map(trial: Trial, within: Range) -> Iterator[alt.Chart]:
    """How many queries took how long, over time."""
    began, found = _intervals(trial)
    if not found:
        return
    upper = _latency.stretches(found)
    ends = [value for each in upper for value in (each.histogram.min_ns, each.histogram.max_ns) if value is not None]
    edges = latency_heat_map.edges(_latency.shown_ms(min(ends)), _latency.shown_ms(max(ends)))
    offset_s = (began - within.zero_ns) / 1e9
    cells = pl.DataFrame(latency_heat_map.cells(upper, edges))
    names = {shade: latency_heat_map.shade_name(shade) for shade in cells["shade"].unique().sort()}
    cells = cells.select(
        "low",
        "high",
        "shade",
        time_s=pl.col("start_s") + offset_s,
        end_s=pl.col("end_s") + offset_s,
        queries=pl.col("shade").replace_strict(names, return_dtype=pl.String),
    )
    title, scale, axis = _latency.milliseconds([edges[0], edges[-1]], "ms")
    y = alt.Y("low:Q", title=title, scale=scale, axis=axis)
    shades = alt.Opacity("shade:O", scale=alt.Scale(range=list(SHADES)), legend=None)
    told = [alt.Tooltip("queries:N"), alt.Tooltip("low:Q", format=",.3~g"), alt.Tooltip("high:Q", format=",.3~g")]
    marks = alt.Chart(cells).mark_rect(color=_look.COLOURS[0], clip=True)
    yield marks.encode(_x(within), alt.X2("end_s:Q"), y, alt.Y2("high:Q"), shades, tooltip=told).properties(
        width=_look.WIDTH, height=HEAT_PX, title=_look.heading("Latency: how many queries took how long")
    )


def percentiles(trial: Trial, within: Range) -> Iterator[Panel]:
    began, found = _intervals(trial)
    points = [
        (name, int(began + (each.offset_s + each.duration_s / 2) * 1e9), ns / 1e6)
        for each in found
        for name, ns in zip(PERCENTS, each.histogram.percentiles(PERCENTS.values()))
    ]
    thinned = Thinned(within.start_ns, within.end_ns)
    thinned.add(
        pl.DataFrame(points, schema={"line": pl.String, "time_ns": pl.Int64, "value": pl.Float64}, orient="row")
    )
    if not thinned.rows().is_empty():
        rows = within.seconds(thinned.rows())
        yield Panel("Percentiles of latency, ms (log scale)", rows, logarithmic=True)


def _intervals(trial: Trial) -> tuple[int, list[Interval]]:
    """When the load began, and the latencies of each interval since; those with queries only."""
    latency, began = trial.latency, trial.load.start_ns
    if latency is None or began is None:
        return 0, []
    return began, [each for each in latency.intervals(latency.result) if each.histogram.total]


def events(trial: Trial, within: Range) -> Iterator[alt.Chart]:
    """What the log of the server under test tells of what it did, and of its first failures."""
    log = trial.log_events
    times = [(kind, trial.monotonic_ns(ns)) for kind, ns in log.head(MOST_EVENTS).iter_rows()] if trial.anchors else []
    for host, told in trial.record.logs.items() if trial.anchors else ():
        times += [(f"{host}: {kind}", trial.monotonic_ns(ns)) for kind, ns in told.first_failure_realtime_ns.items()]
    inside = [
        (visible(kind), (ns - within.zero_ns) / 1e9) for kind, ns in times if within.start_ns <= ns <= within.end_ns
    ]
    if inside:
        rows = pl.DataFrame(inside, schema=["event", "time_s"], orient="row")
        marks = alt.Chart(rows).mark_tick(thickness=1.5, size=12, color=_look.INK, clip=True, tooltip=True)
        y = alt.Y("event:N", title=None, axis=alt.Axis(minExtent=42, grid=False))
        yield marks.encode(_x(within), y).properties(
            width=_look.WIDTH, height=alt.Step(16), title=_look.heading("Events in the log of a server")
        )


def _x(within: Range, name: str = "time_s:Q") -> alt.X:
    scale = alt.Scale(domain=within.extent, nice=False)
    return alt.X(name, title=None, scale=scale, axis=alt.Axis(labels=False, ticks=False, tickCount=10))
