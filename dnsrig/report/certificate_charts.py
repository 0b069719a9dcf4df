"""The charts of a certificate: the floor and the lag by rate, and the smallest difference by number of repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import altair as alt
import polars as pl

from dnsrig.certificate import Certificate, Floor, Measured
from dnsrig.report import figures
from dnsrig.report.charts import _look

PANEL_PX = 190
CAPTIONS = {
    "floor": (
        "Latency of a server without work, from the moment when each query was due: the median of the trials, and"
        " their range as an upright line. This is the floor: the rig cannot measure a smaller latency of any server. Open marks: the rig cannot"
        " sustain this rate, and the table gives the reason."
    ),
    "lag": (
        "The time from the moment when each query was due until it was sent. The instrument adds it, and the latency above"
        " includes it."
    ),
    "smallest": (
        "How much slower one side must be for 80 of 100 comparisons to find the difference, at the 5 % level. Upright"
        " lines: the same figure with each measured trial left out in turn. With 8 repeats or more, rounds are compared. With 3 repeats"
        " no difference is found, however large."
    ),
}
LATENCIES = {"p50": "p50_us", "p99": "p99_us", "p99.9": "p99_9_us"}
LAGS = {"p50": "lag_p50_us", "p99": "lag_p99_us", "max": "lag_max_us"}


def charts(found: Certificate) -> dict[str, alt.VConcatChart]:
    """Name -> drawing, of what there are figures of."""
    drawn = {
        "floor": _by_rate(found, LATENCIES, "latency from the due time, µs"),
        "lag": _by_rate(found, LAGS, "lateness of the instrument, µs"),
        "smallest": _smallest(found),
    }
    return {name: chart for name, chart in drawn.items() if chart is not None}


def _by_rate(found: Certificate, of: Mapping[str, str], title: str) -> alt.VConcatChart | None:
    """A panel a transport, all with the same axes."""
    rows = pl.DataFrame(list(_rates(found.floors, of)))
    # What was never late has no place on a logarithmic axis.
    rows = rows if rows.is_empty() else rows.filter(pl.col("low") > 0)
    if rows.is_empty():
        return None
    rates = alt.Axis(values=sorted(set(rows["rate"])), format="~s")
    x = alt.X("rate:Q", **_look.log_axis(rows["rate"], "rate, queries/s") | {"axis": rates})
    y = alt.Y("median:Q", **_look.log_axis(pl.concat([rows["low"], rows["high"]]), title))
    names = list(of)
    colour = alt.Color("percentile:N", scale=_look.colours(names), legend=alt.Legend())
    shape = alt.Shape("percentile:N", scale=_look.shapes(names), legend=alt.Legend())
    paths = list(dict.fromkeys(rows["path"]))
    dash = alt.StrokeDash("path:N", scale=_look.dashes(paths), legend=alt.Legend() if len(paths) > 1 else None)
    panels = []
    for transport in dict.fromkeys(rows["transport"]):
        base = alt.Chart(rows.filter(pl.col("transport") == transport))
        layers = [
            base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
            base.mark_line(strokeWidth=1.6).encode(x, y, colour, dash),
            *(
                base.transform_filter(wanted)
                .mark_point(size=34, filled=filled, opacity=1, strokeWidth=1.4)
                .encode(x, y, colour, shape)
                for wanted, filled in ((alt.datum.done, True), (~alt.datum.done, False))
            ),
        ]
        panels.append(alt.layer(*layers).properties(width=PANEL_PX, height=220, title=_look.heading(str(transport))))
    return _look.stack([alt.hconcat(*panels, spacing=18)])


def _rates(floors: list[Floor], of: Mapping[str, str]) -> Iterator[dict[str, object]]:
    for floor in floors:
        for percentile, name in of.items():
            value: Measured | None = getattr(floor, name)
            if value is not None:
                ends = {"low": value.low, "median": value.median, "high": value.high}
                about = {
                    "transport": floor.transport,
                    "path": figures.visible(floor.path),
                    "rate": floor.rate_qps,
                    "done": not floor.not_done,
                }
                yield {**about, "percentile": percentile, **ends}


def _smallest(found: Certificate) -> alt.VConcatChart | None:
    rows = pl.DataFrame(
        [
            {
                "server": figures.visible(noise.server),
                "repeats": each.repeats,
                "percent": each.percent,
                "low": each.percent if each.low is None else each.low,
                "high": each.percent if each.high is None else each.high,
            }
            for noise in found.noise
            for each in noise.smallest
            if each.percent is not None
        ]
    )
    # Of trials that are all alike every difference shows.
    rows = rows if rows.is_empty() else rows.filter(pl.col("low") > 0)
    if rows.is_empty():
        return None
    names = list(dict.fromkeys(rows["server"]))
    numbers = sorted({each.repeats for noise in found.noise for each in noise.smallest})
    x = alt.X(
        "repeats:Q",
        title="repeats of each side",
        scale=alt.Scale(domain=[0, max(numbers) + 1], nice=False),
        axis=alt.Axis(values=numbers, format="d"),
    )
    y = alt.Y(
        "percent:Q", **_look.log_axis(pl.concat([rows["low"], rows["high"]]), "smallest difference found, % slower")
    )
    colour = alt.Color("server:N", scale=_look.colours(names), legend=alt.Legend())
    shape = alt.Shape("server:N", scale=_look.shapes(names), legend=alt.Legend())
    base = alt.Chart(rows)
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
        base.mark_line(strokeWidth=1.6).encode(x, y, colour),
        base.mark_point(size=40, filled=True, opacity=1).encode(x, y, colour, shape),
    ]
    return _look.stack([alt.layer(*layers).properties(width=_look.WIDTH, height=240)])
