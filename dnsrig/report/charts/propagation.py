"""How changes arrive at secondaries: the part that has arrived, against the time since the primary was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.figures import visible
from dnsrig.rundir import Variant

TITLE = "Arrival of changes at the secondaries"
ORDER = 22
METRICS = ("propagation_p50_ms", "propagation_p99_ms", "propagation_max_ms", "unseen_changes_percent")

MOST_POINTS = 60
"""Of one line."""
ALL_PERCENT = 100.0


def applies(run: Run) -> bool:
    return any(not trial.propagation.is_empty() for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "Each line is one repeat, all its changes and secondaries together: so many percent of the arrivals took no longer than"
        " so many milliseconds, from sending the update to the primary to the first answer with the new serial. A step is a"
        " timer of a server; a line that ends below 100 % did not see the rest before it was given up."
    )


def draw(run: Run) -> list[Drawing]:
    rows = pl.DataFrame(list(_rows(run)), infer_schema_length=None)
    panels = [_panel(run, rows, other) for other in dict.fromkeys(rows["other"])]
    pairs = [alt.hconcat(*panels[i : i + 2], spacing=24) for i in range(0, len(panels), 2)]
    return [Drawing("all", _look.stack(pairs))]


def _panel(run: Run, rows: pl.DataFrame, other: str) -> alt.Chart:
    """The variants that are alike but for colour; all panels have the axes of the whole."""
    only = other == _split.ONLY
    title, scale = _look.measure(rows["time_ms"], "time since the update was sent, ms")
    names = _split.colour_names(run)
    legend = alt.Legend() if len(names) > 1 else None
    y = alt.Y("percent:Q", title="arrived, %", scale=alt.Scale(domain=[0, ALL_PERCENT]), axis=alt.Axis(tickCount=5))
    chart: alt.Chart = (
        alt.Chart(rows.filter(pl.col("other") == other))
        .mark_line(interpolate="step-after", strokeWidth=1.6, opacity=0.8)
        .encode(
            alt.X(
                "time_ms:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5, format=",~r", labelOverlap="greedy")
            ),
            y,
            alt.Color("colour:N", scale=_look.colours(names), legend=legend),
            alt.StrokeDash("colour:N", scale=_look.dashes(names), legend=legend),
            alt.Detail("repeat:N"),
            alt.Order("percent:Q"),
        )
        .properties(
            width=_look.WIDTH if only else (_look.WIDTH - 60) // 2,
            height=280 if only else 190,
            title="" if only else _look.heading(other),
        )
    )
    return chart


def _rows(run: Run) -> Iterable[dict[str, object]]:
    for variant in run.manifest.variants:
        for trial in run.of_variant(variant.id):
            for percent, time_ms in arrivals(trial):
                yield {
                    "other": _heading(variant, _split.other_axes(run)),
                    "colour": _split.colour_of(run, variant),
                    "repeat": trial.record.spec.repeat,
                    "percent": percent,
                    "time_ms": time_ms,
                }


def _heading(variant: Variant, axes: Sequence[str]) -> str:
    """The variant's values on ``axes``, each with the name of its axis: some are mere numbers."""
    return " · ".join(f"{visible(axis)}: {_split.label(variant, [axis])}" for axis in axes) or _split.ONLY


def arrivals(trial: Trial) -> list[tuple[float, float]]:
    """(percent of all arrivals, the time in ms that they did not exceed), rising; at most `MOST_POINTS` and the first.

    Changes that the primary refused are left out; arrivals that were not seen count among all.
    """
    made = trial.propagation.filter(pl.col("rcode").fill_null(0) == 0)
    times = (made["seen_ns"] - made["changed_ns"]).drop_nulls().sort().to_list()
    if not times:
        return []
    step = max(1, -(-len(times) // MOST_POINTS))
    ranks = sorted({1, *range(step, len(times) + 1, step), len(times)})
    return [(ALL_PERCENT * rank / made.height, times[rank - 1] / 1e6) for rank in ranks]
