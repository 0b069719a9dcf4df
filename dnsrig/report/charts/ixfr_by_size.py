"""Octets and time of a transfer against the size of the change: IXFR, and AXFR beside it."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import altair as alt
import polars as pl

from dnsrig.analysis.metrics.ixfr_stream import transfers
from dnsrig.analysis.read import Run, Trial
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.rundir import Variant

TITLE = "IXFR and AXFR by size of the change"
ORDER = 12
METRICS = ("ixfr_time_percent", "ixfr_octets_percent", "ixfr_whole_percent", "ixfr_time_ms", "ixfr_bytes")

WAYS = ("IXFR", "AXFR")
SHOWN = {"bytes": ("octets of a transfer", "~s"), "time_ms": ("time of a transfer, ms", ",~r")}
"""End of the metric's name -> title of its axis, and how figures are written there."""
MOST_WHOLE_PERCENT = 50.0


def applies(run: Run) -> bool:
    return any(transfers(trial, "ixfr") for trial in run.trials)


def caption(run: Run) -> str:
    return (
        "Solid: asked for as IXFR from the serial before the change; dashed: as AXFR. Each point is the median of the repeats, in which the"
        " same transfer was made many times. Where the solid line meets the dashed one, IXFR no longer pays. An open square: the primary"
        " answered the query for IXFR by the whole zone. Connecting is not counted, and nothing is stored at the receiving end, where"
        " a secondary would have to put differences into its zone."
    )


def draw(run: Run) -> list[Drawing]:
    rows = pl.DataFrame(list(_rows(run)), infer_schema_length=None)
    panels = []
    for other in dict.fromkeys(rows["other"]):
        alike = rows.filter(pl.col("other") == other)
        pair = [_panel(run, alike, name) for name in SHOWN]
        panels.append(alt.hconcat(*pair, spacing=24, title="" if other == _split.ONLY else _look.heading(other)))
    return [Drawing("all", _look.stack(panels))]


def _panel(run: Run, rows: pl.DataFrame, name: str) -> alt.LayerChart | alt.FacetChart:
    """One quantity: a colour a server, solid and dashed the two ways."""
    names, (title, written) = _split.colour_names(run), SHOWN[name]
    sizes = sorted(set(rows["changed"]))
    shown = rows.filter(pl.col("name") == name)
    y_title, scale = _look.measure(shown["value"], title)
    x = alt.X(
        "changed:Q",
        title="records changed (log scale)",
        scale=alt.Scale(type="log", domain=[sizes[0] * 0.8, sizes[-1] * 1.25], nice=False),
        axis=alt.Axis(values=sizes, format="~s", grid=False, labelOverlap="greedy"),
    )
    y = alt.Y("value:Q", title=y_title, scale=scale, axis=alt.Axis(tickCount=5, format=written, labelOverlap="greedy"))
    colour = alt.Color("colour:N", scale=_look.colours(names), legend=alt.Legend() if len(names) > 1 else None)
    dash = alt.StrokeDash("way:N", scale=_look.dashes(WAYS), sort=list(WAYS))
    base = alt.Chart(shown)
    marks = base.transform_filter(~alt.datum.whole).mark_point(filled=True, size=26, opacity=0.9)
    whole = base.transform_filter(alt.datum.whole).mark_point(shape="square", size=70, opacity=1, strokeWidth=1.6)
    return alt.layer(
        base.mark_line(strokeWidth=1.8).encode(x, y, colour, dash),
        marks.encode(x, y, colour),
        whole.encode(x, y, colour),
    ).properties(width=(_look.WIDTH - 60) // 2, height=220)


def _rows(run: Run) -> Iterable[dict[str, object]]:
    axes = [axis for axis in _split.other_axes(run) if axis != "records_changed"]
    for variant in run.manifest.variants:
        done = [trial for trial in run.of_variant(variant.id) if trial.record.outcome == "done"]
        for way in WAYS:
            for name in SHOWN:
                if values := _values(done, f"{way.lower()}_{name}"):
                    yield {
                        "other": _split.label(variant, axes) if axes else _split.ONLY,
                        "colour": _split.colour_of(run, variant),
                        "changed": _changed(run, variant),
                        "way": way,
                        "name": name,
                        "value": median(values),
                        "whole": way == "IXFR" and _is_whole(done),
                    }


def _values(trials: Iterable[Trial], metric: str) -> list[float]:
    found = (trial.value(metric) for trial in trials)
    return [value for value in found if value is not None]


def _is_whole(trials: Iterable[Trial]) -> bool:
    """Whether the primary as a rule answered IXFR by the whole zone."""
    shares = _values(trials, "ixfr_whole_percent")
    return bool(shares) and median(shares) > MOST_WHOLE_PERCENT


def _changed(run: Run, variant: Variant) -> int:
    return int(run.manifest.specs[variant.id].options["records_changed"])
