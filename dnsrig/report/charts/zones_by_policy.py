"""How many zones a second a primary gives away, by how connections are used: a panel a server, a colour a transport."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run
from dnsrig.report.charts import Drawing, _look, _split
from dnsrig.report.figures import parameter, visible
from dnsrig.rundir import Variant

TITLE = "Zones a second by connection policy"
ORDER = 9
METRICS = ("zones_per_s", "connections_made")

METRIC = "zones_per_s"
POLICY = "policy"
"""The axis along x."""
PANEL_PX = 190
DRAWN = ("done", "timeout", "invalid")


def applies(run: Run) -> bool:
    return POLICY in _split.varying_axes(run) and bool(_values(run))


def caption(run: Run) -> str:
    return (
        "Each mark is one repeat; the bar spans the smallest to the largest, its tick is their median. The axis is logarithmic: a step"
        " from one line to the next is a factor of ten. An open triangle ran out of time, so its rate is of what had arrived by"
        " then; an open diamond is invalid and does not count. Look for servers that gain from pipelining, and for those that"
        " lose with connections used again: a trap says why."
    )


def draw(run: Run) -> list[Drawing]:
    rows = pl.DataFrame(_values(run), infer_schema_length=None)
    names = list(dict.fromkeys(rows["panel"]))
    built = [_panel(run, rows, name, alone=len(names) == 1) for name in names]
    pairs = [alt.hconcat(*built[i : i + 2], spacing=24) for i in range(0, len(built), 2)]
    return [Drawing("all", _look.stack(pairs))]


def _panel(run: Run, rows: pl.DataFrame, name: str, *, alone: bool) -> alt.LayerChart | alt.FacetChart:
    """The variants of one server; all panels have the axes of the whole."""
    colours, policies = _names(run, rows), [visible(str(policy)) for policy in run.manifest.axes[POLICY]]
    legend = alt.Legend(columns=3) if len(colours) > 1 else None
    low, high = _look.extent(rows["value"])
    scale = alt.Scale(type="log", domain=[low / 1.3, high * 1.3], nice=False)
    ticks = [10.0**power for power in range(7) if low / 1.3 <= 10**power <= high * 1.3]
    y_axis = alt.Axis(values=ticks, format="~s") if len(ticks) > 1 else alt.Axis(tickCount=4, format="~s")
    x = alt.X("policy:N", sort=policies, title=None, scale=alt.Scale(domain=policies), axis=alt.Axis(labelAngle=0))
    y = alt.Y("value:Q", title="zones a second (log scale)", scale=scale, axis=y_axis)
    aside = alt.XOffset("colour:N", sort=colours, scale=alt.Scale(domain=colours))
    colour = alt.Color("colour:N", scale=_look.colours(colours), legend=legend)
    shape = alt.Shape("colour:N", scale=_look.shapes(colours), legend=legend)
    of_panel = rows.filter(pl.col("panel") == name)
    return alt.layer(*_layers(of_panel, x, y, aside, colour, shape)).properties(
        width=_look.WIDTH if alone else (_look.WIDTH - 60) // 2,
        height=PANEL_PX,
        title="" if name == _split.ONLY else _look.heading(name),
    )


def _layers(
    rows: pl.DataFrame, x: alt.X, y: alt.Y, aside: alt.XOffset, colour: alt.Color, shape: alt.Shape
) -> list[alt.Chart]:
    base = alt.Chart(rows)
    counted = rows.filter(pl.col("outcome") != "invalid")
    spans = alt.Chart(
        counted.group_by("policy", "colour", maintain_order=True).agg(
            value=pl.col("value").median(), low=pl.col("value").min(), high=pl.col("value").max()
        )
    )
    done, limit, invalid = (base.transform_filter(alt.datum.outcome == outcome) for outcome in DRAWN)
    return [
        spans.mark_bar(size=7, opacity=0.28).encode(
            x, alt.Y("low:Q", scale=y["scale"]), alt.Y2("high:Q"), aside, colour
        ),
        spans.mark_tick(thickness=2, size=11, color=_look.INK).encode(x, y, aside),
        done.mark_point(filled=True, size=20, opacity=0.9).encode(x, y, aside, colour, shape),
        limit.mark_point(shape="triangle-up", size=44, opacity=1, strokeWidth=1.4).encode(x, y, aside, colour),
        invalid.mark_point(shape="diamond", size=44, opacity=1, strokeWidth=1.2).encode(x, y, aside, colour),
    ]


def _names(run: Run, rows: pl.DataFrame) -> list[str]:
    """What colours stand for, in the order of the matrix."""
    present = set(rows["colour"])
    ordered = dict.fromkeys(_colour(run, variant) for variant in run.manifest.variants)
    return [name for name in ordered if name in present]


def _values(run: Run) -> list[dict[str, object]]:
    return list(_rows(run))


def _rows(run: Run) -> Iterable[dict[str, object]]:
    panels = _panel_axes(run)
    for variant in run.manifest.variants:
        for trial in run.of_variant(variant.id):
            value, outcome = trial.value(METRIC), trial.record.outcome
            if value is not None and value > 0 and outcome in DRAWN and POLICY in variant.parameters:
                yield {
                    "panel": _split.label(variant, panels),
                    "policy": visible(parameter(variant.parameters[POLICY])),
                    "colour": _colour(run, variant),
                    "value": value,
                    "outcome": outcome,
                }


def _panel_axes(run: Run) -> Sequence[str]:
    return [axis for axis in _split.varying_axes(run) if "server" in axis.lower()]


def _colour(run: Run, variant: Variant) -> str:
    """The variant's values on all axes but those of panels and of x."""
    apart = {POLICY, *_panel_axes(run)}
    return _split.label(variant, [axis for axis in _split.varying_axes(run) if axis not in apart])
