"""How many zones a second arrive by how many transfers at once, beside the law that each worker adds as much as the first."""

from __future__ import annotations

import altair as alt
import polars as pl

from dnsrig.analysis.read import Run
from dnsrig.analysis.summary import describe
from dnsrig.report.charts import Drawing, _look, _split

TITLE = "Zones a second by workers"
ORDER = 9
METRICS = ("zones_per_s",)

METRIC = "zones_per_s"
AXIS = "workers"
"""Label of the axis along x."""
MEASURED = "measured here"
LAW = "law: twice the workers, twice the zones"
HEIGHT_PX = 280
ROWS = {"workers": pl.Int64, "line": pl.String, "value": pl.Float64, "counts": pl.Boolean}


def applies(run: Run) -> bool:
    return AXIS in _split.varying_axes(run) and _measured(run).filter("counts")["workers"].n_unique() > 1


def caption(run: Run) -> str:
    return (
        "Each mark is one repeat, the line joins their medians; both axes are logarithmic. The grey line goes on from the slowest with the fewest workers, as S3's law"
        " has it: time ≈ zones × round trips a zone × RTT / workers. Where a line leaves it, something else binds: the link, ports, or the servers. An"
        " open diamond is invalid and does not count; what hit its limit or failed has no mark."
    )


def draw(run: Run) -> list[Drawing]:
    marks = _measured(run)
    medians = (
        marks.filter("counts").group_by("line", "workers", maintain_order=True).agg(pl.col("value").median())
    ).sort("workers")
    law = _law(medians)
    lines = list(dict.fromkeys(marks["line"]))
    names = [*lines, *dict.fromkeys(law["line"])]
    colours = alt.Scale(domain=names, range=[*_look.colours(lines).range, _look.MUTED][: len(names)])
    dashes = alt.Scale(domain=names, range=[*_look.dashes(lines).range, [2, 3]][: len(names)])
    legend = alt.Legend(columns=3)
    colour = alt.Color("line:N", scale=colours, legend=legend)
    dash = alt.StrokeDash("line:N", scale=dashes, legend=legend)
    counts = sorted(set(marks["workers"]))
    across = alt.Scale(type="log", domain=[counts[0] / 1.15, counts[-1] * 1.15], nice=False)
    x = alt.X("workers:Q", title="workers (log scale)", scale=across, axis=alt.Axis(values=counts, format="d"))
    y = alt.Y("value:Q", **_look.log_axis(pl.concat([marks["value"], law["value"]]), "zones a second"))
    joined = alt.Chart(pl.concat([medians.select("workers", "line", "value"), law]))
    points = alt.Chart(marks.filter("counts")).mark_point(filled=True, size=26, opacity=0.9)
    invalid = alt.Chart(marks.filter(~pl.col("counts"))).mark_point(shape="diamond", size=44, opacity=1)
    picture = alt.layer(
        joined.mark_line(strokeWidth=1.4).encode(x, y, colour, dash),
        points.encode(x, y, colour),
        invalid.encode(x, y, colour),
    ).properties(width=_look.WIDTH, height=HEIGHT_PX)
    return [Drawing("all", _look.stack([picture]))]


def _law(medians: pl.DataFrame) -> pl.DataFrame:
    """From the slowest of the medians with the fewest workers to the most workers: columns workers, line, value."""
    fewest, most = medians["workers"][0], medians["workers"][-1]
    first = medians.filter(pl.col("workers") == fewest)["value"].min()
    ends = {"workers": [fewest, most], "line": [LAW, LAW], "value": [first, first * most / fewest]}
    return pl.DataFrame(ends, schema={name: ROWS[name] for name in ends})


def _measured(run: Run) -> pl.DataFrame:
    """One row a repeat that has a figure: columns of ``ROWS``."""
    others = [axis for axis in _split.varying_axes(run) if axis != AXIS]
    metric, rows = describe(METRIC), []
    for variant in run.manifest.variants:
        workers, label = str(variant.parameters.get(AXIS, "")), _split.label(variant, others)
        for trial in run.of_variant(variant.id):
            value, counts = trial.value(METRIC), metric.counts(trial)
            if workers.isdecimal() and int(workers) and value and (counts or trial.record.outcome == "invalid"):
                line = MEASURED if label == _split.ONLY else label
                rows.append({"workers": int(workers), "line": line, "value": value, "counts": counts})
    return pl.DataFrame(rows, schema=ROWS)
