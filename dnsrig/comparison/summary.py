"""From trials to figures a variant: what was measured, how often, how it spreads, and against what.

Only trials that are `done` are compared. A trial that hit its limit would have taken longer still: its
time is known to be at least the limit, and whatever it enters is printed with "≥". A rate of what was done until then
it has as well as any (`Metric.at_limit`). Printed with "≥" is also a figure of a trial that is done, where
it reached the metric's ceiling: a latency beyond the client's timeout is at least that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from dnsrig.metrics import Metric, all_metrics
from dnsrig.rundir import Outcome, Scalar, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import machines, samples, statistics
from dnsrig.stats.samples import Sample, Samples
from dnsrig.stats.statistics import Bound, Comparison, PercentSpread

_COLUMNS = ("run", "experiment", "variant", "repeat", "outcome", "metric", "unit", "value")


def main_metric(run: Run) -> str:
    """The metric that answers the run's question; all its trials have the same procedure, and so the same."""
    first = next(iter(run.manifest.specs.values()), None)
    return first.main_metric if first else "transfer_time_s"


def lower_bound(trial: Trial, metric: str) -> float | None:
    """The least that ``metric`` of a trial with outcome `timeout` can be; None for most metrics."""
    spec = trial.record.spec
    if metric == spec.main_metric:
        return _watched_s(trial) if describe(metric).unit == "s" else None
    if metric == "time_per_zone_ms" and spec.main_metric == "transfer_time_s":
        return 1e3 * _watched_s(trial) / max(1, spec.dataset.zones)
    return None


def _watched_s(trial: Trial) -> float:
    """For how long after the zero of its times a trial was watched: `probe` starts, and ends, a little before."""
    started_ns, zero_ns = trial.record.instruments.get("probe", {}).get("started_ns"), trial.zero_ns
    if started_ns is None or zero_ns is None:
        return trial.record.spec.limit_s
    return trial.record.spec.limit_s - max(0.0, float(zero_ns - started_ns) / 1e9)


@dataclass(frozen=True)
class VariantRow:
    """One variant under one metric."""

    variant: Variant
    metric: Metric
    outcomes: Counter[Outcome]
    samples: Samples
    """First the figures of the trials that count for the metric, `done` as a rule; then the lower bounds: of those
    `done` whose value reached the metric's ceiling, and of trials at their limit."""
    is_baseline: bool
    baseline: Variant | None
    """What it is compared with; None where the experiment names no baseline, or where it was not measured."""
    stand_in: Variant | None = None
    """What it is compared with instead, where the baseline was measured and has no figure (its trials are invalid,
    say)."""
    unfinished: bool = False
    """Whether a trial hit its limit or failed, so that the repeats with a figure are a biased choice."""
    comparison: Comparison | None = None
    bound: tuple[Bound, float] | None = None
    """A bound of the ratio of medians, if repeats did not finish and so are not compared: each of them took at least
    its limit."""

    @property
    def against(self) -> Variant | None:
        """What it is compared with; None of what others are compared with."""
        other = self.stand_in or self.baseline
        return None if self.is_baseline or other is None or other.id == self.variant.id else other


def describe(name: str) -> Metric:
    """The metric ``name``; of one that this dnsrig does not know, as much as its name says."""
    unknown = Metric(name, name, "", "neither", "not known to this version of dnsrig", 1000, lambda trial: None)
    return all_metrics().get(name, unknown)


def measured_metrics(run: Run) -> list[Metric]:
    """The metrics that at least one finished trial has a value for, the most telling first."""
    names = {name for trial in run.trials for name, value in trial.metrics.items() if value is not None}
    return sorted((describe(name) for name in names), key=lambda metric: (metric.order, metric.name))


def summarise(run: Run) -> pl.DataFrame:
    """One row a finished trial and metric.

    Columns: run, experiment, variant (its id), one a matrix axis, repeat, machine (of a run that names its machines),
    outcome, metric, unit, value (null where the trial has none). An axis named as one of ours gets ``axis.`` before its
    name.
    """
    machine = ["machine"] if run.manifest.machines else []
    axes = {axis: axis if axis not in (*_COLUMNS, *machine) else f"axis.{axis}" for axis in run.manifest.axes}
    rows: list[dict[str, object]] = []
    for trial in run.trials:
        spec = trial.record.spec
        for name, value in trial.metrics.items():
            row: dict[str, object] = {"run": run.manifest.run, "experiment": run.manifest.experiment}
            row |= {"variant": spec.variant.id}
            row |= {column: _text(spec.variant.parameters.get(axis)) for axis, column in axes.items()}
            row |= {"repeat": spec.repeat, "machine": trial.machine, "outcome": trial.record.outcome}
            rows.append(row | {"metric": name, "unit": describe(name).unit, "value": value})
    order = ["run", "experiment", "variant", *axes.values(), "repeat", *machine, "outcome", "metric", "unit", "value"]
    numbers = {"repeat": pl.Int64(), "value": pl.Float64()}
    return pl.DataFrame(rows, schema={name: numbers.get(name, pl.String()) for name in order})


def variant_table(run: Run, metric: str) -> list[VariantRow]:
    """One row a variant, in the order of the matrix; under the main metric with p corrected over its comparisons.

    Under any other metric p is not corrected, so no difference is claimed: `metric_tables` has them all.
    """
    planned = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    rows = _compared(run, metric, planned)
    return _corrected([rows])[0] if metric == main_metric(run) else rows


def metric_tables(run: Run) -> list[tuple[Metric, list[VariantRow]]]:
    """The table of each metric that was measured. The main one answers the question and is corrected by itself; all
    others are corrected together, as the many that they are."""
    others = _others(run)
    comparisons = _tested(run, others)
    tables = dict(zip(others, _corrected([_compared(run, name, comparisons) for name in others]), strict=True))
    return [(metric, tables.get(metric.name) or variant_table(run, metric.name)) for metric in measured_metrics(run)]


def _others(run: Run) -> list[str]:
    """The metrics that were measured beside the main one."""
    return [metric.name for metric in measured_metrics(run) if metric.name != main_metric(run)]


def _tested(run: Run, metrics: Iterable[str]) -> int:
    """The number of comparisons of ``metrics`` in which there is something to test."""
    rows = (row for name in metrics for row in _compared(run, name, 0))
    return sum(row.comparison is not None and row.comparison.p is not None for row in rows)


def comparisons_planned(variants: Sequence[Variant], baseline: Mapping[str, Scalar]) -> int:
    """How many variants have a baseline to be compared with."""
    pairs = [(variant, baseline_among(variants, baseline, variant)) for variant in variants]
    return sum(against is not None and against.id != variant.id for variant, against in pairs)


def _compared(run: Run, metric: str, comparisons: int) -> list[VariantRow]:
    """Each row beside its baseline. ``comparisons``: of how many this is one, which decides the test."""
    rows = {variant.id: variant_row(run, variant, describe(metric)) for variant in run.manifest.variants}
    for row in rows.values():
        if row.baseline is not None and not rows[row.baseline.id].samples and rows[row.baseline.id].outcomes:
            rows[row.variant.id] = replace(row, stand_in=_stand_in(run, rows, row.baseline))
    return [
        replace(row, comparison=_compare(row, rows[other.id], comparisons), bound=_bound(row, rows[other.id]))
        if (other := row.against) is not None
        else row
        for row in rows.values()
    ]


def _stand_in(run: Run, rows: Mapping[str, VariantRow], baseline: Variant) -> Variant | None:
    """The first variant of the matrix with a figure that differs from ``baseline`` on the baseline's axes alone."""
    same = {axis: value for axis, value in baseline.parameters.items() if axis not in run.manifest.baseline}
    others = (row for row in rows.values() if same.items() <= row.variant.parameters.items())
    return next((row.variant for row in others if row.samples and not row.unfinished), None)


def _corrected(tables: Sequence[list[VariantRow]]) -> list[list[VariantRow]]:
    """``tables`` with p corrected over all that was tested in any of them."""
    p_values = [
        row.comparison.p for table in tables for row in table if row.comparison and row.comparison.p is not None
    ]
    corrected = iter(statistics.holm(p_values))
    return [
        [
            replace(row, comparison=replace(row.comparison, p_corrected=next(corrected)))
            if row.comparison and row.comparison.p is not None
            else row
            for row in table
        ]
        for table in tables
    ]


def baseline_of(run: Run, variant: Variant) -> Variant | None:
    """The variant with the baseline's values on the axes that have one, and the same values on all others."""
    return baseline_among(run.manifest.variants, run.manifest.baseline, variant)


def baseline_among(variants: Iterable[Variant], baseline: Mapping[str, Scalar], variant: Variant) -> Variant | None:
    """The variant with the baseline's values, before there is a run."""
    fixed = {axis: value for axis, value in baseline.items() if axis in variant.parameters}
    if not fixed:
        return None
    wanted = variant.parameters | fixed
    return next((other for other in variants if other.parameters == wanted), None)


def variant_row(run: Run, variant: Variant, metric: Metric) -> VariantRow:
    """One row, without its comparison."""
    trials = run.of_variant(variant.id)
    baseline = baseline_of(run, variant)
    return VariantRow(
        variant=variant,
        metric=metric,
        outcomes=Counter(trial.record.outcome for trial in trials),
        samples=samples_of(trials, metric),
        unfinished=any(t.record.outcome in ("timeout", "server-failed") and not metric.counts(t) for t in trials),
        is_baseline=baseline is not None and baseline.id == variant.id,
        baseline=baseline,
    )


def samples_of(trials: Iterable[Trial], metric: Metric) -> Samples:
    """The samples of the trials that count for ``metric``, and then the lower bounds of trials at their limit."""
    trials = list(trials)
    at_limit = [trial for trial in trials if trial.record.outcome == "timeout" and not metric.counts(trial)]
    found = [(trial, bound) for trial in at_limit if (bound := lower_bound(trial, metric.name)) is not None]
    bounds = [Sample(bound, bound, True, trial.record.spec.repeat, trial.machine) for trial, bound in found]
    return Samples([*done_samples(trials, metric), *bounds])


def done_samples(trials: Iterable[Trial], metric: Metric) -> Samples:
    """The samples of the trials that count for ``metric``: first what was measured, then what is only a lower bound."""
    found = [_sample(trial, metric, value) for trial in trials if (value := trial.value(metric.name)) is not None]
    counted = [sample for sample in found if sample is not None]
    return Samples(sorted(counted, key=lambda sample: sample.at_least))


def _sample(trial: Trial, metric: Metric, value: float) -> Sample | None:
    if not metric.counts(trial):
        return None
    at_ceiling, low = metric.at_ceiling(trial, value), metric.lower_end(trial, value)
    return Sample(value, low, at_ceiling, trial.record.spec.repeat, trial.machine)


def _compare(row: VariantRow, baseline: VariantRow, comparisons: int) -> Comparison:
    """No figure where repeats did not finish: those that did are a biased choice. ``comparisons``: of how many this is
    one."""
    if row.unfinished or baseline.unfinished:
        return statistics.nothing_to_compare(row.metric.better)
    return samples.compare(row.samples, baseline.samples, row.metric.better, comparisons)


def compare_two(run: Run, variant: Variant, against: Variant, metric: Metric) -> Comparison:
    """``variant`` in percent of ``against``, by the test that the tables of ``run`` use; p is not corrected."""
    is_main = metric.name == main_metric(run)
    planned = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    comparisons = max(1, planned if is_main else _tested(run, _others(run)))
    return _compare(variant_row(run, variant, metric), variant_row(run, against, metric), comparisons)


def percent_of(row: VariantRow, baseline: VariantRow) -> tuple[Bound, PercentSpread] | None:
    """The row's repeats in percent of the baseline's mean (of the same machine), those at their limit counted with what
    is known of them.

    A lower bound of the baseline bounds the percentage from above, one of the row from below; with both, or where a
    server failed, nothing is known.
    """
    failed = "server-failed" in row.outcomes or "server-failed" in baseline.outcomes
    ours, theirs = row.samples, baseline.samples
    if failed or (ours.censored and theirs.censored):
        return None
    our_values = ours.low if ours.censored else ours.numbers
    their_values = theirs.low if theirs.censored else theirs.numbers
    found = machines.percent_of_mean(samples.strata(our_values, their_values, ours, theirs))
    return ("≥" if ours.censored else "≤" if theirs.censored else "", found) if found else None


def _bound(row: VariantRow, baseline: VariantRow) -> tuple[Bound, float] | None:
    """The bound of the ratio of medians; None if a server failed: its time has no bound."""
    if not (row.unfinished or baseline.unfinished) or "server-failed" in row.outcomes + baseline.outcomes:
        return None
    found = samples.compare(row.samples.without_rounds(), baseline.samples.without_rounds(), row.metric.better)
    return None if found.percent is None else (found.bound, found.percent)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
