"""So many percent had arrived after so long: what the charts of arrival share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import polars as pl

from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.figures import visible
from dnsrig.rundir import Variant

MOST_POINTS = 60
"""Of one line, and the first."""


def points(times_ms: Sequence[float], count: int) -> list[tuple[float, float]]:
    """(percent of ``count``, the time in ms that they did not exceed), rising, thinned; ``times_ms`` are sorted."""
    step = max(1, -(-len(times_ms) // MOST_POINTS))
    ranks = sorted({1, *range(step, len(times_ms) + 1, step), len(times_ms)}) if times_ms else []
    return [(100 * rank / count, times_ms[rank - 1]) for rank in ranks]


def heading(variant: Variant, axes: Sequence[str]) -> str:
    """The variant's values on ``axes``, each with the name of its axis: some are mere numbers."""
    return " · ".join(f"{visible(axis)}: {_split.label(variant, [axis])}" for axis in axes) or _split.ONLY


def draw(rows: Iterable[Mapping[str, object]], names: Sequence[str], *, time: str, arrived: str) -> list[Drawing]:
    """One drawing of ``rows`` (panel, colour, repeat, percent, time_ms); all panels have the axes of the whole.

    ``names``: the colours in their order; ``time`` and ``arrived``: what the axes are called.
    """
    frame = pl.DataFrame(list(rows), infer_schema_length=None)
    found = list(dict.fromkeys(frame["panel"]))
    panels = [_panel(frame, panel, names, time, arrived) for panel in found]
    pairs = [alt.hconcat(*panels[i : i + 2], spacing=24) for i in range(0, len(panels), 2)]
    return [Drawing("all", _look.stack(pairs))]


def _panel(rows: pl.DataFrame, panel: str, names: Sequence[str], time: str, arrived: str) -> alt.Chart:
    only = panel == _split.ONLY
    title, scale = _look.measure(rows["time_ms"], time)
    legend = alt.Legend() if len(names) > 1 else None
    x_axis = alt.Axis(tickCount=5, format=",~r", labelOverlap="greedy")
    chart: alt.Chart = (
        alt.Chart(rows.filter(pl.col("panel") == panel))
        .mark_line(interpolate="step-after", strokeWidth=1.6, opacity=0.8)
        .encode(
            alt.X("time_ms:Q", title=title, scale=scale, axis=x_axis),
            alt.Y("percent:Q", title=arrived, scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=5)),
            alt.Color("colour:N", scale=_look.colours(names), legend=legend),
            alt.StrokeDash("colour:N", scale=_look.dashes(names), legend=legend),
            alt.Detail("repeat:N"),
            alt.Order("percent:Q"),
        )
        .properties(
            width=_look.WIDTH if only else (_look.WIDTH - 60) // 2,
            height=280 if only else 190,
            title="" if only else _look.heading(panel),
        )
    )
    return chart
