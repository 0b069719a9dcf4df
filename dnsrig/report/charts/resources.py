"""What it costs over time: mean and range over the repeats, one row a resource, one column a group of variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from dnsrig.report.charts import Drawing, _look, _series, _split
from dnsrig.rundir import Variant
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "Which resources did each variant use over time?"
ORDER = 40
METRICS = (
    "secondary_cpu_s",
    "primary_cpu_s",
    "secondary_memory_peak_bytes",
    "primary_memory_peak_bytes",
    "io_wait_s",
    "time_wait_peak",
    "transfer_bytes",
    "transfer_packets",
    "resolver_cpu_s",
    "resolver_memory_peak_bytes",
    "cache_hits_percent",
    "upstream_a_query",
    "validations_per_s",
)

CELL_PX, HEADING_PX = 84, 44
"""Most height of a row, at which all rows are on a screen; height of the two lines of its heading."""
COLUMNS = 3
"""Columns side by side; more go into another drawing."""

POINTS = 150
"""Points of one line: the common grid of time onto which repeats are laid before their mean is taken."""
NOTHING = pl.DataFrame(schema={"time_s": pl.Float64, "value": pl.Float64})
"""The course of a counter that a resolver does not have: time_s since the zero of its trial, and value."""


@dataclass(frozen=True)
class Resource:
    title: str
    read: Callable[[Trial], pl.DataFrame]
    """Reads a trial's course, with columns time_s and value."""


def _scaled(rows: pl.DataFrame, divisor: float) -> pl.DataFrame:
    return rows.with_columns(pl.col("value") / divisor)


def _resources(run: Run) -> list[Resource]:
    subject = _split.subject(run)
    primaries = max((len(spec.primaries) for spec in run.manifest.specs.values()), default=0)
    resources = [
        Resource(
            f"CPU of the {subject}, % of one core",
            lambda t: _scaled(_series.rate(t, t.subject, "cgroup", "cpu_usage_us"), 1e4),
        ),
        Resource(
            f"Anonymous memory of the {subject}, MB",
            lambda t: _scaled(_series.gauge(t, t.subject, "cgroup", "memory_anonymous_bytes"), 1e6),
        ),
        Resource(
            f"The {subject} waited for reads and writes, % of the time",
            lambda t: _scaled(_series.rate(t, t.subject, "psi", "io_some_us"), 1e4),
        ),
    ]
    if any(spec.world for spec in run.manifest.specs.values()):
        return [*resources, *_of_a_resolver()]
    if not primaries:  # nothing is transferred
        return resources
    return [
        *resources,
        Resource(
            f"Sockets of the {subject} in TIME_WAIT", lambda t: _series.gauge(t, t.subject, "sockets", "tcp_time_wait")
        ),
        Resource(
            "Received from the primary, MB/s" if primaries == 1 else "Received from the primaries, MB/s",
            lambda t: _scaled(_series.total([_received(t, interface) for interface in _to_primaries(t)]), 1e6),
        ),
    ]


def _of_a_resolver() -> list[Resource]:
    """What S5 draws, and what a resolver counts itself."""
    return [
        Resource(
            "Sockets of the resolver in TIME_WAIT", lambda t: _series.gauge(t, t.subject, "sockets", "tcp_time_wait")
        ),
        Resource(
            "Packets to the authoritative servers a second",
            lambda t: _series.rate(
                t, t.subject, t.record.spec.interface(t.subject, str(t.record.spec.world)), "tx_packets"
            ),
        ),
        Resource(
            "Cache hits, % of the queries",
            lambda t: _scaled(counter_share(t, "cache_hits", "cache_hits", "cache_misses"), 0.01),
        ),
        Resource(
            "Upstream queries for each client query", lambda t: counter_share(t, "upstream_queries", "client_queries")
        ),
        Resource("Validations a second", lambda t: counter_rate(t, "validations")),
    ]


def _to_primaries(trial: Trial) -> list[str]:
    spec = trial.record.spec
    return list(dict.fromkeys(spec.interface(trial.subject, primary) for primary in spec.primaries))


def _received(trial: Trial, interface: str) -> pl.DataFrame:
    """Bytes a second."""
    return _series.rate(trial, trial.subject, interface, "rx_bytes")


def applies(run: Run) -> bool:
    return any((trial.samples["host"] == trial.subject).any() for trial in _trials(run))


def caption(run: Run) -> str:
    sizes = _split.zone_counts(run)
    only = f" Only the largest size is drawn: {sizes[-1]:,} zones." if len(sizes) > 1 else ""
    return (
        "Line: mean of the repeats. Band: smallest to largest. Look for variants that are fast because they use more CPU or memory,"
        " and for a wide band: there the repeats differ. A pale line is the mean of the remaining repeats after others have"
        " ended. The chart shows trials that are done or at their limit. Seconds count from the start of the"
        f" {_split.subject(run)}.{only}"
    )


def draw(run: Run) -> list[Drawing]:
    groups = _columns(run)
    names = list(groups)
    parts = [names[start : start + COLUMNS] for start in range(0, len(names), COLUMNS)]
    data = [
        (resource.title, {name: _over_repeats(run, groups[name], resource) for name in names})
        for resource in _resources(run)
    ]
    present = [(title, by_group) for title, by_group in data if any(not rows.is_empty() for rows in by_group.values())]
    return [Drawing(str(number), _grid(run, part, present)) for number, part in enumerate(parts, start=1)]


def _columns(run: Run) -> dict[str, list[Variant]]:
    """Column heading -> its variants, of the largest size only."""
    largest = _split.zone_counts(run)[-1]
    columns: dict[str, list[Variant]] = {}
    for variant in run.manifest.variants:
        if run.manifest.specs[variant.id].dataset.zones == largest:
            columns.setdefault(_split.label(variant, _split.other_axes(run)), []).append(variant)
    return columns


def _trials(run: Run) -> list[Trial]:
    variants = [variant for column in _columns(run).values() for variant in column]
    return [trial for variant in variants for trial in _comparable(run, variant)]


def _comparable(run: Run, variant: Variant) -> list[Trial]:
    return [trial for trial in run.of_variant(variant.id) if trial.record.outcome in ("done", "timeout")]


def _over_repeats(run: Run, variants: Sequence[Variant], resource: Resource) -> pl.DataFrame:
    """The repeats of each variant laid onto one grid of time.

    Columns: colour, time_s, mean, low, high, all (true while every repeat was still running).
    """
    frames = [
        _band([resource.read(trial) for trial in _comparable(run, variant)]).with_columns(
            colour=pl.lit(_split.colour_of(run, variant))
        )
        for variant in variants
    ]
    return pl.concat(frames)


def _band(series: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Mean, smallest and largest over ``series`` in each stretch of time."""
    rows = pl.concat([s.with_columns(repeat=pl.lit(i)) for i, s in enumerate(series)]) if series else pl.DataFrame()
    if rows.is_empty():
        numbers = dict.fromkeys(("time_s", "mean", "low", "high"), pl.Float64())
        return pl.DataFrame(schema=numbers | {"all": pl.Boolean()})
    stretch = max(0.1, _look.extent(rows["time_s"])[1] / POINTS)
    inside = rows.filter(pl.col("time_s") >= 0).with_columns(slot=(pl.col("time_s") / stretch).floor())
    each = inside.group_by("slot", "repeat").agg(pl.col("value").mean())
    return (
        each.group_by("slot")
        .agg(mean=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max(), running=pl.len())
        .sort("slot")
        .select(
            time_s=((pl.col("slot") + 0.5) * stretch).round(3),
            mean=pl.col("mean").round_sig_figs(4),
            low=pl.col("low").round_sig_figs(4),
            high=pl.col("high").round_sig_figs(4),
            all=pl.col("running") == len(series),
        )
    )


def _grid(run: Run, part: Sequence[str], data: Sequence[tuple[str, dict[str, pl.DataFrame]]]) -> alt.VConcatChart:
    """One row a resource; all columns of a row share their scales, across drawings too."""
    end_s = max(_look.extent(rows["time_s"])[1] for _, by_group in data for rows in by_group.values())
    height = min(CELL_PX, (_split.SCREEN_PX - 2 * _split.FRAME_PX) // len(data) - HEADING_PX)
    rows = []
    for number, (title, by_group) in enumerate(data):
        top = max(_look.extent(frame["high"])[1] for frame in by_group.values())
        cells = [
            _cell(
                run,
                by_group[name],
                _heading(title, name, column),
                (end_s, top, len(part), height),
                number == len(data) - 1,
            )
            for column, name in enumerate(part)
        ]
        rows.append(alt.hconcat(*cells, spacing=14))
    return _look.stack(rows, 8)


def _heading(title: str, name: str, column: int) -> str | list[str]:
    """The heading of a column: its name, if names differ; above the first column also the resource."""
    first = title if column == 0 else ""
    return first if name == _split.ONLY else [first, name]


def _cell(
    run: Run, rows: pl.DataFrame, heading: str | list[str], extent: tuple[float, float, int, int], last: bool
) -> alt.LayerChart | alt.FacetChart:
    end_s, top, columns, height = extent
    names = _split.colour_names(run)
    drawn = {_split.colour_of(run, trial.record.spec.variant) for trial in _trials(run)}
    shown = [name for name in names if name in drawn]
    legend = alt.Legend(symbolType="stroke", values=shown) if len(names) > 1 else None
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=legend)
    dash = alt.StrokeDash("colour:N", scale=_look.dashes(names), legend=legend)
    x = alt.X(
        "time_s:Q",
        title=f"seconds since {_split.since(run.trials[0])}" if last else None,
        scale=alt.Scale(domain=[0, end_s], nice=False),
        axis=alt.Axis(labels=last, ticks=last, tickCount=10 // columns),
    )
    scale = alt.Scale(domain=[0, 1.05 * top or 1], nice=False)
    axis = alt.Axis(tickCount=4, format=",~r", minExtent=42)
    base = alt.Chart(rows)
    band = base.mark_area(opacity=0.18).encode(
        x, alt.Y("low:Q", title=None, scale=scale, axis=axis), alt.Y2("high:Q"), colour
    )
    mean = alt.Y("mean:Q", title=None, scale=scale, axis=axis)
    lines = [
        alt.Chart(rows.filter(pl.col("all") == whole))
        .mark_line(strokeWidth=1.8, opacity=1 if whole else 0.4)
        .encode(x, mean, colour, dash)
        for whole in (True, False)
    ]
    width = (_look.WIDTH - 50 * (columns - 1)) // columns
    return alt.layer(band, *lines).properties(width=width, height=height, title=_look.heading(heading))


def counter_rate(trial: Trial, counter: str) -> pl.DataFrame:
    """The growth of a counter a second; nothing of what the resolver does not count."""
    grown = _grown(trial, counter)
    return grown.select("time_s", value=pl.col("grown") / pl.col("seconds")) if grown.height else NOTHING


def counter_share(trial: Trial, part: str, *whole: str) -> pl.DataFrame:
    """The growth of ``part`` divided by the growth of ``whole`` together, from sample to sample; left out where
    ``whole`` did not grow."""
    found = _grown(trial, part).select("time_s", part="grown")
    for number, name in enumerate(whole):
        found = found.join(_grown(trial, name).select("time_s", pl.col("grown").alias(f"of{number}")), on="time_s")
    if found.is_empty():
        return NOTHING
    total = pl.sum_horizontal(*(f"of{number}" for number in range(len(whole))))
    return found.filter(total > 0).select("time_s", value=pl.col("part") / total)


def _grown(trial: Trial, counter: str) -> pl.DataFrame:
    """From each sample to the next."""
    rows, zero_ns = trial.rows(STATISTICS), trial.zero_ns
    if zero_ns is None:
        rows = rows.clear()
    timed = rows.filter(pl.col("counter") == counter).sort("time_ns")
    return (
        timed.select(
            time_s=(pl.col("time_ns") - (zero_ns or 0)) / 1e9,
            grown=pl.col("value").diff(),
            seconds=pl.col("time_ns").diff() / 1e9,
        )
        .drop_nulls()
        .filter((pl.col("seconds") > 0) & (pl.col("grown") >= 0))
    )
