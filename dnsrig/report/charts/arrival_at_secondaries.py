"""How one change arrives at very many secondaries: the part that has it, against the time since the first NOTIFY."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import polars as pl

from dnsrig.analysis.metrics.fan_out import is_fan_out, spread
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.figures import visible

TITLE = "Arrival of a change at all secondaries"
ORDER = 23
METRICS = ("last_done_s",)

SECONDARIES = "secondaries"
"""The axis told apart by colour."""
MOST_POINTS = 60
"""Of one line."""
OUTCOMES = ("done", "limit", "invalid")


def applies(run: Run) -> bool:
    return any(arrivals(trial) for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "Each line is one repeat: so many percent of the secondaries had the new version after so long, counted from the first NOTIFY."
        " Lines of few and of many secondaries side by side: as many are fed at a time. A line with stairs: the primary serves some,"
        " and the others come back when their retry timer says so. One that ends below 100 % did not reach all."
    )


def draw(run: Run) -> list[Drawing]:
    rows = pl.DataFrame(list(_rows(run)), infer_schema_length=None)
    panels = [_panel(run, rows, panel) for panel in dict.fromkeys(rows["panel"])]
    pairs = [alt.hconcat(*panels[i : i + 2], spacing=24) for i in range(0, len(panels), 2)]
    return [Drawing("all", _look.stack(pairs))]


def _panel(run: Run, rows: pl.DataFrame, panel: str) -> alt.Chart:
    """The variants that differ in the number of secondaries alone; all panels have the axes of the whole."""
    only = panel == _split.ONLY
    names = list(dict.fromkeys(rows.sort("count")["colour"]))
    title, scale = _look.measure(rows["time_ms"], "since the first NOTIFY, ms")
    legend = alt.Legend() if len(names) > 1 else None
    x_axis = alt.Axis(tickCount=5, format=",~r", labelOverlap="greedy")
    chart: alt.Chart = (
        alt.Chart(rows.filter(pl.col("panel") == panel))
        .mark_line(interpolate="step-after", strokeWidth=1.6, opacity=0.8)
        .encode(
            alt.X("time_ms:Q", title=title, scale=scale, axis=x_axis),
            alt.Y("percent:Q", title="have it, %", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=5)),
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


def _rows(run: Run) -> Iterable[dict[str, object]]:
    axes = [axis for axis in _split.varying_axes(run) if axis != SECONDARIES]
    for variant in run.manifest.variants:
        for trial in run.of_variant(variant.id):
            count = _secondaries(trial)
            for percent, time_ms in arrivals(trial):
                yield {
                    "panel": visible(_split.label(variant, axes)),
                    "colour": f"{count:,} secondaries" if count > 1 else "1 secondary",
                    "count": count,
                    "repeat": trial.record.spec.repeat,
                    "percent": percent,
                    "time_ms": time_ms,
                }


def _secondaries(trial: Trial) -> int:
    return int(trial.record.spec.options.get(SECONDARIES, 1))


def arrivals(trial: Trial) -> list[tuple[float, float]]:
    """(percent of all secondaries, the time in ms by which they had all their zones in the new version), rising; at most `MOST_POINTS`."""
    if trial.record.outcome not in OUTCOMES or not is_fan_out(trial):
        return []
    seen = spread(trial)
    if seen is None or seen.zero_ns is None or not seen.arrived_ns:
        return []
    times_ms = [max(1e-3, (ns - seen.zero_ns) / 1e6) for ns in seen.arrived_ns]
    step = max(1, -(-len(times_ms) // MOST_POINTS))
    ranks = sorted({1, *range(step, len(times_ms) + 1, step), len(times_ms)})
    return [(100 * rank / max(_secondaries(trial), len(times_ms)), times_ms[rank - 1]) for rank in ranks]
