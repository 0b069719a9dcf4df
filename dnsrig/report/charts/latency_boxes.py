"""Latency over time as boxes: of each stretch the smallest, the quarters, the median and the largest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from dnsrig.metrics.latency import timeout_ms
from dnsrig.report.charts import Drawing, _latency, _look
from dnsrig.runs.latency import Interval
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

TITLE = "How does the latency of a typical query change over time?"
ORDER = 7
METRICS = ("p50_ms", "max_ms")

HEIGHT_PX = 200


def applies(run: Run) -> bool:
    return bool(_latency.over_time(run))


def caption(run: Run) -> str:
    return (
        "Each box shows the queries that were due in a stretch of time: the box holds their middle half, its tick is the median, and the thin"
        " line reaches from the fastest to the slowest query. Look for boxes that rise or grow: the server is busy with something else. The line"
        " is long wherever a single query was slow."
        + _latency.between(run, "box and line cover both, and the thin tick is the median of the lower ends")
        + f" {_latency.which(run)}"
    )


def draw(run: Run) -> list[Drawing]:
    return [
        _latency.drawing(run, trial, _look.stack([_panel(run, trial)]), in_sight=number == 0)
        for number, trial in enumerate(_latency.over_time(run))
    ]


def boxes(upper: Sequence[Interval], lower: Sequence[Interval], most_ms: float | None) -> Iterable[dict[str, float]]:
    """One a stretch in which queries were due, from their lower to their upper ends; what reaches the client's timeout
    is drawn there."""
    for interval, least in zip(upper, lower or upper):
        highest = [_latency.shown_ms(value, most_ms) for value in interval.histogram.percentiles(_latency.PERCENTS)]
        lowest = [_latency.shown_ms(value, most_ms) for value in least.histogram.percentiles(_latency.PERCENTS)]
        if highest and lowest:
            width = interval.duration_s
            middle_s = interval.offset_s + width / 2
            yield {
                "middle_s": middle_s,
                "start_s": middle_s - 0.35 * width,
                "end_s": middle_s + 0.35 * width,
                "low": lowest[0],
                "quarter": lowest[1],
                "median": highest[2],
                "lower_median": lowest[2],
                "three_quarters": highest[3],
                "high": highest[4],
            }


def _panel(run: Run, trial: Trial) -> alt.LayerChart | alt.FacetChart:
    upper, lower = _latency.intervals(trial)
    most = timeout_ms(trial)
    rows = pl.DataFrame(list(boxes(upper, lower, most)))
    largest = _look.extent(rows["high"])[1]
    title, scale, axis = _latency.milliseconds([_look.extent(rows["low"])[0], largest], "latency, ms")
    time = alt.Scale(domain=[0, upper[-1].offset_s + upper[-1].duration_s], nice=False)
    time_axis = alt.Axis(tickCount=10, grid=False)
    x = alt.X("middle_s:Q", title="seconds since the first query was due", scale=time, axis=time_axis)
    start, end = alt.X("start_s:Q"), alt.X2("end_s:Q")
    low = alt.Y("low:Q", title=title, scale=scale, axis=axis)
    base = alt.Chart(rows)
    colour = _latency.colour(run, trial.record.spec.variant)
    layers = [
        base.mark_rule(color=colour, strokeWidth=1).encode(x, low, alt.Y2("high:Q")),
        base.mark_rect(fill=_look.PAPER, stroke=colour, strokeWidth=1).encode(
            start, end, alt.Y("quarter:Q"), alt.Y2("three_quarters:Q")
        ),
        base.mark_rule(color=_look.INK, strokeWidth=2).encode(start, end, alt.Y("median:Q")),
        *(
            [base.mark_rule(color=_look.INK, strokeWidth=0.8).encode(start, end, alt.Y("lower_median:Q"))]
            if lower
            else []
        ),
        *_latency.timeout_line(most, largest, low),
    ]
    return alt.layer(*layers).properties(width=_look.WIDTH, height=HEIGHT_PX)
