"""From trials to figures a variant: what was measured, how often, how it spreads, and against what.

Only trials that are `done` are compared. A trial that hit its limit would have taken longer still: its
time is known to be at least the limit, and whatever it enters is printed with "≥".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from dnsrig.analysis import statistics
from dnsrig.analysis.metrics import Metric, all_metrics
from dnsrig.analysis.read import Run, Trial
from dnsrig.analysis.statistics import Comparison, Interval, Spread
from dnsrig.rundir import Outcome, Variant

_COLUMNS = ("run", "experiment", "variant", "repeat", "outcome", "metric", "unit", "value")


def _watched_s(trial: Trial) -> float:
    """For how long after its exec the secondary was watched: `probe` starts, and ends, a little before."""
    probe, server = trial.record.instruments.get("probe", {}), trial.record.servers.get("secondary")
    if server is None or "started_ns" not in probe:
        return trial.record.spec.limit_s
    return trial.record.spec.limit_s - max(0.0, float(server.exec_ns - probe["started_ns"]) / 1e9)


LOWER_BOUNDS: dict[str, Callable[[Trial], float]] = {
    "transfer_time_s": _watched_s,
    "time_per_zone_ms": lambda trial: 1e3 * _watched_s(trial) / max(1, trial.record.spec.dataset.zones),
}
"""Metrics of which a trial with outcome `limit` still says something: at least this."""


@dataclass(frozen=True)
class VariantRow:
    """One variant under one metric.

    ``values`` are those of the trials `done`; ``at_least`` the lower bounds of those at their limit. With any
    of these, ``spread`` covers both, ``censored`` is set, and its median and ``high`` read "≥".
    """

    variant: Variant
    metric: Metric
    outcomes: Counter[Outcome]
    values: list[float]
    at_least: list[float]
    is_baseline: bool
    baseline: Variant | None
    """What it is compared with; None where the experiment names no baseline, or where it was not measured."""
    comparison: Comparison | None = None

    @property
    def censored(self) -> bool:
        return bool(self.at_least)

    @property
    def spread(self) -> Spread | None:
        return statistics.spread([*self.values, *self.at_least])

    @property
    def interval(self) -> Interval | None:
        return None if self.censored else statistics.bootstrap_interval(self.values)


def describe(name: str) -> Metric:
    """The metric ``name``; of one that this dnsrig does not know, as much as its name says."""
    unknown = Metric(name, name, "", "neither", "not known to this version of dnsrig", 1000, lambda trial: None)
    return all_metrics().get(name, unknown)


def measured_metrics(run: Run) -> list[Metric]:
    """The metrics that at least one finished trial has a value for, the most telling first."""
    names = {name for trial in run.trials for name, value in trial.record.metrics.items() if value is not None}
    return sorted((describe(name) for name in names), key=lambda metric: (metric.order, metric.name))


def summarise(run: Run) -> pl.DataFrame:
    """One row a finished trial and metric.

    Columns: run, experiment, variant (its id), one a matrix axis, repeat, outcome, metric, unit, value (null
    where the trial has none). An axis named as one of ours gets ``axis.`` before its name.
    """
    axes = {axis: axis if axis not in _COLUMNS else f"axis.{axis}" for axis in run.manifest.axes}
    rows: list[dict[str, object]] = []
    for trial in run.trials:
        spec = trial.record.spec
        for name, value in trial.record.metrics.items():
            row: dict[str, object] = {"run": run.manifest.run, "experiment": run.manifest.experiment}
            row |= {"variant": spec.variant.id}
            row |= {column: _text(spec.variant.parameters.get(axis)) for axis, column in axes.items()}
            row |= {"repeat": spec.repeat, "outcome": trial.record.outcome}
            rows.append(row | {"metric": name, "unit": describe(name).unit, "value": value})
    texts = ("run", "experiment", "variant", *axes.values(), "outcome", "metric", "unit")
    order = ["run", "experiment", "variant", *axes.values(), "repeat", "outcome", "metric", "unit", "value"]
    schema = {name: pl.String() for name in texts} | {"repeat": pl.Int64(), "value": pl.Float64()}
    return pl.DataFrame(rows, schema={name: schema[name] for name in order})


def variant_table(run: Run, metric: str) -> list[VariantRow]:
    """One row a variant, in the order of the matrix, with p corrected over the comparisons of this metric."""
    rows = {variant.id: _row(run, variant, describe(metric)) for variant in run.manifest.variants}
    compared = {
        key: _compare(row, rows[row.baseline.id])
        for key, row in rows.items()
        if row.baseline is not None and not row.is_baseline
    }
    tested = {key: c.p for key, c in compared.items() if c.p is not None}
    corrected = dict(zip(tested, statistics.holm(list(tested.values())), strict=True))
    for key, comparison in compared.items():
        rows[key] = replace(rows[key], comparison=replace(comparison, p_corrected=corrected.get(key)))
    return list(rows.values())


def baseline_of(run: Run, variant: Variant) -> Variant | None:
    """The variant with the baseline's values on the axes that have one, and the same values on all others."""
    fixed = {axis: value for axis, value in run.manifest.baseline.items() if axis in variant.parameters}
    if not fixed:
        return None
    wanted = variant.parameters | fixed
    return next((other for other in run.manifest.variants if other.parameters == wanted), None)


def _row(run: Run, variant: Variant, metric: Metric) -> VariantRow:
    trials = run.of_variant(variant.id)
    values = [
        value
        for trial in trials
        if trial.record.outcome == "done" and (value := trial.record.metrics.get(metric.name)) is not None
    ]
    bound = LOWER_BOUNDS.get(metric.name)
    at_least = [bound(trial) for trial in trials if trial.record.outcome == "limit"] if bound else []
    baseline = baseline_of(run, variant)
    return VariantRow(
        variant=variant,
        metric=metric,
        outcomes=Counter(trial.record.outcome for trial in trials),
        values=values,
        at_least=at_least,
        is_baseline=baseline is not None and baseline.id == variant.id,
        baseline=baseline,
    )


def _compare(row: VariantRow, baseline: VariantRow) -> Comparison:
    """No figure where either hit its limit or failed: those of its repeats that finished are a biased choice."""
    unfinished = {"limit", "server-failed"}
    if unfinished & set(row.outcomes) or unfinished & set(baseline.outcomes):
        return statistics.nothing_to_compare(row.metric.better)
    return statistics.compare(row.values, baseline.values, row.metric.better)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
