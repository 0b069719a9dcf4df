"""What may be said of a figure in words: how many repeats it stands on, and whether a difference is one."""

from __future__ import annotations

from collections import Counter
from statistics import median

from dnsrig.analysis.read import Run
from dnsrig.analysis.statistics import FEWEST_REPEATS
from dnsrig.analysis.summary import VariantRow, measured_metrics
from dnsrig.report import figures
from dnsrig.rundir import Outcome, Scalar, Variant

FIRST_METRIC = "transfer_time_s"
"""The metric that answers a question about transfers."""


def main_metric(run: Run) -> str:
    """The metric of the short answer: the transfer time, or what stands first in the registry."""
    if any(FIRST_METRIC in trial.record.metrics for trial in run.trials):
        return FIRST_METRIC
    measured = measured_metrics(run)
    return measured[0].name if measured else FIRST_METRIC


def parameter(run: Run, value: Scalar) -> str:
    """A value of the matrix; a server with its exact version, because its source moves on."""
    server = run.manifest.servers.get(str(value))
    return f"{value} {server.version}" if server else figures.parameter(value)


def outcomes(counts: Counter[Outcome]) -> str:
    """``3``, when all are done; otherwise ``2 done, 1 limit``."""
    if not counts:
        return "0"
    if set(counts) == {"done"}:
        return str(counts["done"])
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def measured(row: VariantRow) -> str:
    """The row's median with its range; for trials at their limit, how far they came."""
    return figures.spread(row.spread, row.metric.unit, censored=row.censored)


def progress(run: Run, variant: Variant) -> str:
    """Why trials did not finish, each reason once: ``612 of 10,000 zones after 60 s``."""
    reasons = [t.record.reason for t in run.of_variant(variant.id) if t.record.outcome != "done" and t.record.reason]
    counted = Counter(reasons)
    return "; ".join(f"{reason} (×{count})" if count > 1 else reason for reason, count in counted.items())


def relative(run: Run, row: VariantRow) -> str:
    """The row in percent of its baseline, or why there is no such figure."""
    if row.baseline is None:
        return figures.NONE
    if row.is_baseline:
        return "baseline"
    if row.comparison is None or row.comparison.percent is None:
        return "not compared"
    error = instrument_error(run, row)
    if error is not None and abs(row.comparison.difference or 0.0) < error:
        return f"no difference above the error of {figures.figure(error, row.metric.unit)}"
    return figures.percent(row.comparison)


def judgement(row: VariantRow) -> str:
    """What the interval and the test allow to say of a comparison, in a few words."""
    if row.comparison is None or row.comparison.percent is None:
        return ""
    if row.comparison.interval is None:
        return f"points and range only: fewer than {FEWEST_REPEATS} repeats"
    if row.comparison.change == "undecided":
        return "not told apart from the baseline"
    return row.comparison.change


def instrument_error(run: Run, row: VariantRow) -> float | None:
    """The resolution of what was measured, in the metric's unit; None for metrics that have none stated."""
    resolutions = [
        value
        for variant in (row.variant, row.baseline)
        if variant is not None
        for trial in run.of_variant(variant.id)
        if (value := trial.record.metrics.get("probe_resolution_s")) is not None
    ]
    if not resolutions:
        return None
    if row.metric.name == "transfer_time_s":
        return median(resolutions)
    if row.metric.name == "time_per_zone_ms":
        zones = run.manifest.specs[row.variant.id].dataset.zones
        return 1e3 * median(resolutions) / max(1, zones)
    return None
