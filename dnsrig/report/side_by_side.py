"""Small tables in which the axis of the baseline lies across: a row for all else that varies, a column for each of its
values.

For experiments with many variants that differ by one choice, as `connection-policy` has: the choices stand side by
side.
"""

from __future__ import annotations

from dataclasses import dataclass

from dnsrig.comparison.summary import VariantRow, main_metric, measured_metrics, variant_table
from dnsrig.metrics import Metric
from dnsrig.report import figures, wording
from dnsrig.rundir import Scalar
from dnsrig.runs.run import Run

METRICS = {
    "zones_per_s": (
        "zones_per_s",
        "connections_made",
        "full_handshakes",
        "client_time_wait_peak",
        "primary_cpu_us_per_zone",
        "client_cpu_us_per_zone",
        "transfer_failures",
    )
}
"""Main metric of a run -> what is shown so."""


@dataclass(frozen=True)
class Line:
    """One row: its values on ``SideBySide.row_axes``, and a cell a column, None where that was not measured."""

    names: list[str]
    cells: list[VariantRow | None]


@dataclass(frozen=True)
class SideBySide:
    """One metric of a run, laid out in two directions."""

    metric: Metric
    row_axes: list[str]
    columns: list[str]
    lines: list[Line]

    def text(self, row: VariantRow | None) -> str:
        """``65,900 [61,000..70,200]``: the unit is above the table."""
        if row is None or row.samples.spread is None:
            return figures.NONE
        return " ".join(wording.median_and_range(row.samples, "")).rstrip()


def tables(run: Run) -> list[SideBySide]:
    """None for runs with another question, and where there is nothing that lies across."""
    across = _across(run)
    if across is None:
        return []
    wanted = METRICS[main_metric(run)]
    known = {metric.name: metric for metric in measured_metrics(run)}
    return [_table(run, known[name], across) for name in wanted if name in known]


def _across(run: Run) -> str | None:
    axes = [axis for axis, values in run.manifest.axes.items() if len(values) > 1]
    compared = [axis for axis in axes if axis in run.manifest.baseline]
    if main_metric(run) not in METRICS or len(compared) != 1 or len(axes) < 2:
        return None
    return compared[0]


def _table(run: Run, metric: Metric, across: str) -> SideBySide:
    row_axes = [axis for axis in run.manifest.axes if axis != across]
    columns = run.manifest.axes[across]
    found: dict[tuple[Scalar, ...], dict[Scalar, VariantRow]] = {}
    for row in variant_table(run, metric.name):
        values = row.variant.parameters
        found.setdefault(tuple(values[axis] for axis in row_axes), {})[values[across]] = row
    lines = [
        Line([wording.parameter(run, value) for value in key], [cells.get(column) for column in columns])
        for key, cells in found.items()
    ]
    return SideBySide(metric, row_axes, [figures.parameter(column) for column in columns], lines)
