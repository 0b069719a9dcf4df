"""What a report draws as a metric against an axis of the matrix: one of ``CHARTS`` each. `_by_axis` says how."""

from __future__ import annotations

import polars as pl

from dnsrig.comparison.published import figures_beside
from dnsrig.metrics.ixfr_stream import ixfr_whole_percent
from dnsrig.report.charts import MAIN, _split
from dnsrig.report.charts._by_axis import TIMEOUT, MetricByAxis, Reference
from dnsrig.report.names import varying_axes
from dnsrig.rundir import TrialSpec
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

CARRIER, CASE, CHANGED, CONGESTION = "carrier", "case", "records_changed", "congestion"
POLICY, WORKERS = "policy", "workers"
"""Labels of axes."""
THROUGHPUT = "throughput_kbytes_per_s"
LAW = "law: twice the workers, twice the zones"
MOST_WHOLE_PERCENT = 50.0
MARKS = "Each mark is one repeat. An open diamond is an invalid repeat, which does not count."
BARS = f"{MARKS} The bar spans the smallest to the largest value, and its tick is the median. The axis is logarithmic."
LINES = f"{MARKS} The line joins the medians, and the band spans the smallest to the largest value."
CHANGES = (
    "Solid lines: IXFR from the serial before the change. Dashed lines: AXFR. Each repeat made the same transfer many times. Where the"
    " solid line meets the dashed line, IXFR saves nothing any more. An open square: the primary answered IXFR with the whole zone."
    f" {LINES}"
)


def _workers(spec: TrialSpec) -> float | None:
    workers = str(spec.variant.parameters.get(WORKERS, ""))
    return float(workers) if workers.isdecimal() else None


def _changed(spec: TrialSpec) -> float | None:
    return float(spec.options[CHANGED]) if CHANGED in spec.options else None


def _law(chart: MetricByAxis, run: Run, marks: pl.DataFrame) -> list[Reference]:
    """From the slowest of the medians with the fewest workers to the most workers."""
    medians = (
        marks.filter("counts")
        .group_by("place", "group", maintain_order=True)
        .agg(pl.col("value").median())
        .sort("place", "value")
    )
    if medians.is_empty():
        return []
    fewest, most = medians["place"][0], medians["place"][-1]
    return [Reference(_split.ONLY, at, LAW, medians["value"][0] * at / fewest) for at in (fewest, most)]


def _published(chart: MetricByAxis, run: Run, marks: pl.DataFrame) -> list[Reference]:
    """Published figures beside the variants; and from a median to the source's size, unless that was measured."""
    shown = figures_beside(run, chart.metrics(run))
    where = {beside.variant.id: chart.where(run, beside.variant) for beside in shown}
    whole = {(beside.figure, where[beside.variant.id][1]) for beside in shown if beside.extrapolated is None}
    found: list[Reference] = []
    for beside in shown:
        (panel, group), place = where[beside.variant.id], chart.place(run.manifest.specs[beside.variant.id])
        if place is None:
            continue
        figure = beside.figure
        found.append(Reference(panel, place, f"published: {figure.source.id}", figure.value, figure.low, figure.high))
        same = marks.filter("counts", panel=panel, place=place, group=group)
        middle = same["value"].median()
        if beside.extrapolated is None or (figure, group) in whole or TIMEOUT in same["outcome"]:
            continue
        if isinstance(middle, float):
            found.append(Reference(panel, place, group, beside.extrapolated(middle), origin=middle))
    return list(dict.fromkeys(found))


def _by_whole_zone(trial: Trial) -> bool:
    """Whether the primary as a rule answered IXFR by the whole zone."""
    return (ixfr_whole_percent(trial) or 0.0) > MOST_WHOLE_PERCENT


CHARTS = [
    MetricByAxis(
        id="replication",
        title="How long does each carrier take, by congestion control?",
        order=9,
        shows=(MAIN, "served_s"),
        axis=CARRIER,
        ways={"": MAIN},
        panel_axes=lambda run: [axis for axis in varying_axes(run) if axis == CASE],
        across=True,
        beside=_published,
        says="The time until the far site serves the last zone. Pipelined transfers go to the instrument, which stores and serves nothing."
        f" {BARS} An open triangle with ≥ hit the limit and would have taken longer. Where a server failed there is no mark.",
        says_beside="A cross is the figure that S3 published for its size, over the same link; S3 does not name its congestion control. Where fewer"
        " zones or records were measured than in S3, a dotted line leads to an open square. The square was not measured: it is the median, multiplied"
        " by the ratio of S3's size to ours. This is S3's own law. It is too high by the costs that a start has only once.",
    ),
    MetricByAxis(
        id="congestion",
        title="Which throughput does each congestion control reach?",
        order=9,
        shows=(THROUGHPUT,),
        axis=CONGESTION,
        ways={"": THROUGHPUT},
        beside=_published,
        says=f"{BARS} Repeats differ in the seed of the link's loss. The same repeat of each algorithm has the same seed.",
        says_beside="Beside it are the figures that S4 published: a range as a bar, a single figure as a cross.",
    ),
    MetricByAxis(
        id="workers",
        title="Do more workers transfer more zones a second?",
        order=9,
        shows=("zones_per_s",),
        axis=WORKERS,
        ways={"": "zones_per_s"},
        number=_workers,
        beside=_law,
        says=f"{LINES} Both axes are logarithmic. The grey line starts at the slowest variant with the fewest workers and follows S3's law:"
        " time ≈ zones × round trips a zone × RTT / workers. Where a line leaves the grey line, something else is the limit: the link, ports, or the"
        " servers. Trials that hit their limit or failed have no mark.",
    ),
    MetricByAxis(
        id="zones-by-policy",
        title="How many zones a second does each way to use connections transfer?",
        order=9,
        shows=("zones_per_s", "connections_made"),
        axis=POLICY,
        ways={"": "zones_per_s"},
        panel_axes=lambda run: [axis for axis in varying_axes(run) if "server" in axis.lower()],
        says=f"{BARS} An open triangle ran out of time, so its rate is the rate until then. Look for servers that gain from pipelining, and"
        " for servers that lose when connections are used again: a trap gives the reason.",
    ),
    MetricByAxis(
        id="ixfr-by-size",
        title="Up to which size of a change does IXFR save bytes?",
        order=12,
        shows=("ixfr_bytes_percent", "ixfr_whole_percent", "ixfr_bytes"),
        axis=CHANGED,
        ways={"IXFR": "ixfr_bytes", "AXFR": "axfr_bytes"},
        measure="size of a transfer",
        number=_changed,
        panel_axes=_split.other_axes,
        logarithmic=False,
        apart=_by_whole_zone,
        says=CHANGES,
    ),
    MetricByAxis(
        id="ixfr-time-by-size",
        title="Up to which size of a change does IXFR save time?",
        order=12,
        shows=("ixfr_time_percent", "ixfr_time_ms"),
        axis=CHANGED,
        ways={"IXFR": "ixfr_time_ms", "AXFR": "axfr_time_ms"},
        measure="time of a transfer",
        number=_changed,
        panel_axes=_split.other_axes,
        logarithmic=False,
        apart=_by_whole_zone,
        says=f"{CHANGES} The time to connect is not counted. The receiving end stores nothing, whereas a secondary would apply the differences"
        " to its zone.",
    ),
    MetricByAxis(
        id="time-per-zone",
        title="Does each zone take longer when there are more of them?",
        order=20,
        shows=("time_per_zone_ms", "transfer_time_s"),
        axis=_split.ZONES,
        ways={"": "time_per_zone_ms"},
        number=lambda spec: spec.dataset.zones,
        panel_axes=_split.other_axes,
        logarithmic=False,
        says="If each zone cost the same, a line would be level. A falling line: a fixed cost is spread over more zones. A rising line, or a band that"
        f" widens: something fills up, and sizes between those measured cannot be predicted. {LINES} An open triangle with ≥ hit its"
        " limit: there the line is only a lower bound.",
    ),
]
