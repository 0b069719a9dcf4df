"""The chart of a prediction: time against the number of zones, each limit a line, the slowest of them what is
predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import altair as alt
import polars as pl

from dnsrig import outputs
from dnsrig.prediction.combine import Prediction, predict
from dnsrig.prediction.round_trips import POLICIES
from dnsrig.prediction.scenario import MOST, Scenario
from dnsrig.report import figures, svg
from dnsrig.report.charts import _look

POINTS = 49
DECADES = 2.0
"""To either side of the number of zones that was asked about."""
LEAST_S = 0.1
"""Times below it are not drawn: nobody plans for them, and a limit that asks for nothing has no place on a log axis."""


def write(scenario: Scenario, path: Path) -> None:
    """Draw to ``path`` as SVG, or as PNG where its name ends so."""
    drawn = svg.render(draw(scenario))
    if path.suffix.lower() == ".png":
        outputs.write(path, svg.png(drawn))
    else:
        outputs.write(path, drawn.encode())


def draw(scenario: Scenario) -> alt.VConcatChart:
    points = [predict(replace(scenario, zones=zones)) for zones in _sizes(scenario.zones)]
    schema = {"limit": pl.String, "zones": pl.Int64, "time_s": pl.Float64}
    lines = pl.DataFrame(list(_rows(points)), schema=schema, orient="row")
    names = list(dict.fromkeys(lines["limit"]))
    x = alt.X("zones:Q", title="number of zones (log scale)", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s"))
    y = alt.Y(
        "time_s:Q", title="time to all zones, s (log scale)", scale=alt.Scale(type="log"), axis=alt.Axis(format=",~r")
    )
    base = alt.Chart(lines).mark_line(strokeWidth=2)
    # Beside the limits: a band as wide as the limits' own factors, so that nobody takes the line for a measurement.
    band = alt.Chart(pl.DataFrame(list(_band(points)))).mark_area(opacity=0.18, color=_look.INK)
    asked = alt.Chart(pl.DataFrame({"zones": [scenario.zones]})).mark_rule(color=_look.MUTED, strokeDash=[3, 3])
    layers = alt.layer(
        band.encode(x, alt.Y("low_s:Q"), alt.Y2("high_s:Q")),
        base.encode(
            x,
            y,
            alt.Color("limit:N", scale=_look.colours(names), legend=alt.Legend()),
            alt.StrokeDash("limit:N", scale=_look.dashes(names), legend=alt.Legend()),
        ),
        asked.encode(x),
    )
    heading = [
        f"How long will {figures.visible(scenario.secondary)} take ({POLICIES[scenario.policy]})?",
        "Grey band: the prediction with its error. Lines: the limits, of which the slowest decides.",
    ]
    return _look.stack([layers.properties(width=_look.WIDTH, height=300, title=_look.heading(heading))])


def _sizes(zones: int) -> list[int]:
    low, high = max(0.0, math.log10(zones) - DECADES), min(math.log10(MOST), math.log10(zones) + DECADES)
    return sorted({round(10 ** (low + (high - low) * i / (POINTS - 1))) for i in range(POINTS)})


def _rows(points: list[Prediction]) -> Iterator[tuple[str, int, float]]:
    for point in points:
        for limit in point.limits:
            if limit.time_s >= LEAST_S:
                yield limit.name, point.scenario.zones, limit.time_s


def _band(points: list[Prediction]) -> Iterator[dict[str, float]]:
    for point in points:
        if point.limits and point.low_s >= LEAST_S:
            yield {"zones": point.scenario.zones, "low_s": point.low_s, "high_s": point.high_s}
