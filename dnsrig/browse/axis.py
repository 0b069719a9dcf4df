"""A trial on one axis of time: the panels that stand below each other, move and zoom together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.analysis import sockets
from dnsrig.analysis.latency import Interval
from dnsrig.analysis.read import Trial
from dnsrig.browse import stream
from dnsrig.browse.thin import Samples, Series, Thinned
from dnsrig.report.charts import Drawing, _latency, _look, _over_time, _series, _split, latency_heat_map
from dnsrig.report.charts._over_time import Panel
from dnsrig.report.figures import visible

PERCENTS = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
MOST_SERIES = 8
"""Of those that an address asks for."""
MOST_EVENTS = 2_000
HEAT_PX = 120
AROUND = 0.05
"""Of its length before and after `measure`, where nothing else is asked."""
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


def of_trial(trial: Trial, from_s: float | None = None, to_s: float | None = None) -> Range | None:
    """From ``from_s`` to ``to_s`` within its phases; by default `measure` and a little around it. None without any
    phase."""
    phases = trial.record.phases
    if not phases:
        return None
    first, last = phases[0].start.monotonic_ns, phases[-1].end.monotonic_ns
    zero = trial.zero_ns if trial.zero_ns is not None else first
    start, end = first, last
    if trial.measure is not None:
        around = int(AROUND * (trial.measure.end.monotonic_ns - trial.measure.start.monotonic_ns))
        start, end = trial.measure.start.monotonic_ns - around, trial.measure.end.monotonic_ns + around
    start = start if from_s is None else zero + int(from_s * 1e9)
    end = end if to_s is None else zero + int(to_s * 1e9)
    start, end = max(first, min(start, last - 1)), min(last, end)
    return Range(zero, start, max(end, start + 1))


def drawing(
    trial: Trial, within: Range, asked: Sequence[tuple[str, str, str]] = (), *, nothing_else: bool = False
) -> Drawing:
    """All panels of ``trial``; first those of the series ``asked`` for (host, source, metric), and ``nothing_else``."""
    if nothing_else:
        panels = list(_sampled(trial, within, _of_address(asked), len(asked)))
        return Drawing("axis", _look.stack(_drawn(trial, within, panels, [_phases(trial, within)]), 8))
    wanted = _of_address(asked) | _wanted(trial)
    sampled = [*_sampled(trial, within, wanted, len(asked)), *_seen(trial, within)]
    panels = [*_percentiles(trial, within), *sampled]
    above = [_phases(trial, within), *_heat_map(trial, within), *_events(trial, within)]
    return Drawing("axis", _look.stack(_drawn(trial, within, panels, above), 8))


def _drawn(trial: Trial, within: Range, panels: Sequence[Panel], above: Sequence[alt.Chart]) -> list[alt.Chart]:
    """``panels`` below what is ``above``; the lowest says what the time is."""
    names = dict.fromkeys(name for panel in panels for name in panel.rows["line"].unique(maintain_order=True) if name)
    lines = sorted(names, key=[*trial.record.spec.hosts, *names].index)  # hosts have the same colours in every trial
    since = f"seconds since {_split.since(trial)}"
    below = [_over_time.panel(each, lines, within.extent, since if each is panels[-1] else None) for each in panels]
    return [*above, *below]


def _sampled(trial: Trial, within: Range, wanted: dict[str, list[Series]], always: int) -> Iterator[Panel]:
    """Panels of samples.arrow, read piece by piece; the first so many ``always``, others unless they are nothing but
    zero."""
    samples = Samples(wanted, within.start_ns, within.end_ns)
    path = trial.directory / "samples.arrow"
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            for rows in stream.chunks(file):
                samples.add(rows)
    for title, rows in samples.panels().items():
        if title in list(wanted)[:always] or rows["value"].cast(pl.Boolean).any():
            yield Panel(title, within.seconds(rows).with_columns(pl.col("value").round_sig_figs(5)))


def _of_address(asked: Iterable[tuple[str, str, str]]) -> dict[str, list[Series]]:
    """A panel each, as sampled: a counter rises."""
    series = itertools.islice(dict.fromkeys(asked), MOST_SERIES)
    return {visible("/".join(key)): [Series(visible(key[0]), *key)] for key in series}


def _wanted(trial: Trial) -> dict[str, list[Series]]:
    spec = trial.record.spec
    found: dict[str, list[Series]] = {}
    per_host = {
        "CPU, % of one core": ("cgroup", "cpu_usage_us", True, 1e-4),
        "Anonymous memory, MB": ("cgroup", "memory_anonymous_bytes", False, 1e-6),
        "Waiting for reads and writes, % of the time": ("psi", "io_some_us", True, 1e-4),
        "Sockets in TIME_WAIT": ("sockets", "tcp_time_wait", False, 1.0),
        "TCP sockets in use": ("sockets", "tcp_inuse", False, 1.0),
        "TCP connections opened, a second": ("tcp", "active_opens", True, 1.0),
    }
    for title, (source, metric, counter, factor) in per_host.items():
        found[title] = [Series(host, host, source, metric, counter, factor) for host in spec.hosts]
    links = {spec.interface(trial.subject, other): other for other in spec.hosts if other != trial.subject}
    for title, metric in (("Received by the server under test, MB/s", "rx_bytes"), ("Sent by it, MB/s", "tx_bytes")):
        found[title] = [
            Series(f"link {other}", trial.subject, link, metric, True, 1e-6) for link, other in links.items()
        ]
    return found


def _seen(trial: Trial, within: Range) -> Iterator[Panel]:
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


def _x(within: Range, name: str = "time_s:Q") -> alt.X:
    scale = alt.Scale(domain=within.extent, nice=False)
    return alt.X(name, title=None, scale=scale, axis=alt.Axis(labels=False, ticks=False, tickCount=10))


def _phases(trial: Trial, within: Range) -> alt.Chart:
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


def _heat_map(trial: Trial, within: Range) -> Iterator[alt.Chart]:
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


def _percentiles(trial: Trial, within: Range) -> Iterator[Panel]:
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
    """When the load began, and what was due in each interval since; those with queries only."""
    latency, began = trial.latency, trial.load.start_ns
    if latency is None or began is None:
        return 0, []
    return began, [each for each in latency.intervals("due") if each.histogram.total]


def _events(trial: Trial, within: Range) -> Iterator[alt.Chart]:
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
            width=_look.WIDTH, height=alt.Step(16), title=_look.heading("As the log of a server tells")
        )
