"""From trials to figures a variant: what was measured, how often, how it spreads, and against what.

Only trials that are `done` are compared. A trial that hit its limit would have taken longer still: its
time is known to be at least the limit, and whatever it enters is printed with "≥". A rate of what was done until then
it has as well as any (`Metric.at_limit`). Printed with "≥" is also a figure of a trial that is done, where
it reached the metric's ceiling: a latency beyond the client's timeout is at least that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from dnsrig.metrics import Metric, all_metrics
from dnsrig.rundir import Outcome, Scalar, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import ends, machines, rounds, significance, statistics
from dnsrig.stats.ends import Ends
from dnsrig.stats.statistics import Bound, Comparison, Interval, PercentSpread, Spread

_COLUMNS = ("run", "experiment", "variant", "repeat", "outcome", "metric", "unit", "value")


def main_metric(run: Run) -> str:
    """The metric that answers the run's question; all its trials have the same procedure, and so the same."""
    first = next(iter(run.manifest.specs.values()), None)
    return first.main_metric if first else "transfer_time_s"


def lower_bound(trial: Trial, metric: str) -> float | None:
    """What a trial with outcome `timeout` still says of ``metric``: at least this. None of most metrics."""
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
    """One variant under one metric.

    ``values`` are those of the trials that count for the metric, `done` as a rule; ``at_least`` the lower bounds: of
    trials at their limit, and of those `done` whose value reached the metric's ceiling. With any of these, ``spread``
    covers both, ``censored`` is set, and its median and ``high`` read "≥".
    """

    variant: Variant
    metric: Metric
    outcomes: Counter[Outcome]
    values: list[float]
    at_least: list[float]
    lower: list[float]
    """The lower ends of ``values`` and then of ``at_least``: as these where nothing is known below them."""
    repeats: list[int]
    """Of ``values`` and ``at_least``: the rounds that they were measured in."""
    machines: list[str]
    """The same of ``lower``: where they were measured, all the same of a run on one machine."""
    is_baseline: bool
    baseline: Variant | None
    """What it is compared with; None where the experiment names no baseline, or where it was not measured."""
    stand_in: Variant | None = None
    """What it is compared with instead, where the baseline was measured and has no figure (its trials are invalid,
    say)."""
    unfinished: bool = False
    """Whether a trial hit its limit or failed, so that those of its repeats that have a figure are a biased choice."""
    comparison: Comparison | None = None
    bound: tuple[Bound, float] | None = None
    """A bound of the ratio of medians, if repeats did not finish and so are not compared: each of them took at least
    its limit."""

    @property
    def against(self) -> Variant | None:
        """What it is compared with; None of what others are compared with."""
        other = self.stand_in or self.baseline
        return None if self.is_baseline or other is None or other.id == self.variant.id else other

    @property
    def censored(self) -> bool:
        return bool(self.at_least)

    @property
    def median_known(self) -> bool:
        """Whether ``spread`` has the median: fewer than half of the repeats are known to be larger only."""
        return self.ends.has_median

    @property
    def spread(self) -> Spread | None:
        return statistics.spread([*self.values, *self.at_least])

    @property
    def lower_spread(self) -> Spread | None:
        return statistics.spread(self.lower)

    @property
    def ends(self) -> Ends:
        """In the order of ``lower``."""
        return Ends(self.lower, [*self.values, *[math.inf] * len(self.at_least)])

    @property
    def interval(self) -> Interval | None:
        return None if self.censored else statistics.bootstrap_interval(self.values)


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

    Under any other metric p is not corrected, so no difference is told: `metric_tables` has them all.
    """
    planned = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    rows = _compared(run, metric, planned)
    return _corrected([rows])[0] if metric == main_metric(run) else rows


def metric_tables(run: Run) -> list[tuple[Metric, list[VariantRow]]]:
    """The table of each metric that was measured. The main one answers the question and is corrected by itself; all
    others are corrected together, as the many that they are."""
    metrics, main = measured_metrics(run), main_metric(run)
    others = [metric.name for metric in metrics if metric.name != main]
    comparisons = sum(_is_tested(row) for name in others for row in _compared(run, name, 0))
    tables = dict(zip(others, _corrected([_compared(run, name, comparisons) for name in others]), strict=True))
    return [(metric, tables.get(metric.name) or variant_table(run, metric.name)) for metric in metrics]


def comparisons_planned(variants: Sequence[Variant], baseline: Mapping[str, Scalar]) -> int:
    """How many variants have a baseline to be compared with."""
    pairs = [(variant, baseline_among(variants, baseline, variant)) for variant in variants]
    return sum(against is not None and against.id != variant.id for variant, against in pairs)


def _compared(run: Run, metric: str, comparisons: int) -> list[VariantRow]:
    """Each row beside its baseline. ``comparisons``: of how many this is one, which decides the test."""
    rows = {variant.id: variant_row(run, variant, describe(metric)) for variant in run.manifest.variants}
    for row in rows.values():
        if row.baseline is not None and not rows[row.baseline.id].lower and rows[row.baseline.id].outcomes:
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
    return next((row.variant for row in others if row.lower and not row.unfinished), None)


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


def _is_tested(row: VariantRow) -> bool:
    return row.comparison is not None and row.comparison.p is not None


def baseline_of(run: Run, variant: Variant) -> Variant | None:
    """The variant with the baseline's values on the axes that have one, and the same values on all others."""
    return baseline_among(run.manifest.variants, run.manifest.baseline, variant)


def baseline_among(variants: Iterable[Variant], baseline: Mapping[str, Scalar], variant: Variant) -> Variant | None:
    """The same before there is a run."""
    fixed = {axis: value for axis, value in baseline.items() if axis in variant.parameters}
    if not fixed:
        return None
    wanted = variant.parameters | fixed
    return next((other for other in variants if other.parameters == wanted), None)


def variant_row(run: Run, variant: Variant, metric: Metric) -> VariantRow:
    """One row, without its comparison."""
    trials = run.of_variant(variant.id)
    done = done_values(trials, metric)
    at_limit = [trial for trial in trials if trial.record.outcome == "timeout"]
    found = [(trial, bound) for trial in at_limit if (bound := lower_bound(trial, metric.name)) is not None]
    bounds = [bound for _, bound in found]
    baseline = baseline_of(run, variant)
    return VariantRow(
        variant=variant,
        metric=metric,
        outcomes=Counter(trial.record.outcome for trial in trials),
        values=done.values,
        at_least=[*done.at_least, *bounds],
        lower=[*done.lower, *bounds],
        repeats=done.repeats,
        machines=[*done.machines, *(trial.machine for trial, _ in found)],
        unfinished=any(t.record.outcome in ("timeout", "server-failed") and not metric.counts(t) for t in trials),
        is_baseline=baseline is not None and baseline.id == variant.id,
        baseline=baseline,
    )


@dataclass(frozen=True)
class Done:
    """Of trials that count for a metric: what was measured, and what is only known to be at least so much."""

    values: list[float]
    at_least: list[float]
    lower: list[float]
    """The lower ends of ``values`` and then of ``at_least``."""
    repeats: list[int]
    """The same of the rounds."""
    machines: list[str]


def done_values(trials: Iterable[Trial], metric: Metric) -> Done:
    counted = [(trial, value) for trial in trials if (value := trial.value(metric.name)) is not None]
    counted = [(trial, value) for trial, value in counted if metric.counts(trial)]
    measured = [(trial, value) for trial, value in counted if not metric.at_ceiling(trial, value)]
    at_ceiling = [(trial, value) for trial, value in counted if metric.at_ceiling(trial, value)]
    both = (*measured, *at_ceiling)
    return Done(
        [value for _, value in measured],
        [value for _, value in at_ceiling],
        [metric.lower_end(trial, value) for trial, value in both],
        [trial.record.spec.repeat for trial, _ in both],
        [trial.machine for trial, _ in both],
    )


def _compare(row: VariantRow, baseline: VariantRow, comparisons: int) -> Comparison:
    """No figure where repeats did not finish: those that did are a biased choice. ``comparisons``: of how many this is
    one."""
    if row.unfinished or baseline.unfinished:
        return statistics.nothing_to_compare(row.metric.better)
    # Ends are ordered by round only where none reached its ceiling.
    same_rounds = row.repeats == baseline.repeats and not (row.censored or baseline.censored)
    by_rounds = same_rounds and significance.by_rounds(len(row.repeats), comparisons)
    pair = machines.pair(row.machines, baseline.machines)
    return ends.compare(row.ends, baseline.ends, row.metric.better, rounds.pair(pair) if by_rounds else pair)


def compare_two(run: Run, variant: Variant, against: Variant, metric: Metric) -> Comparison:
    """``variant`` in percent of ``against``, as the table of ``run`` would, if this were its only comparison."""
    return _compare(variant_row(run, variant, metric), variant_row(run, against, metric), 1)


def percent_of(row: VariantRow, baseline: VariantRow) -> tuple[Bound, PercentSpread] | None:
    """The row's repeats in percent of the baseline's mean (of the same machine), those at their limit counted with what
    is known of them.

    A lower bound of the baseline bounds the percentage from above, one of the row from below; with both, or where a
    server failed, nothing is known.
    """
    failed = "server-failed" in row.outcomes or "server-failed" in baseline.outcomes
    if failed or (row.censored and baseline.censored):
        return None
    ours = row.lower if row.censored else row.values
    theirs = baseline.lower if baseline.censored else baseline.values
    found = machines.percent_of_mean(machines.strata(ours, theirs, row.machines, baseline.machines))
    return ("≥" if row.censored else "≤" if baseline.censored else "", found) if found else None


def _bound(row: VariantRow, baseline: VariantRow) -> tuple[Bound, float] | None:
    """The bound of the ratio of medians; None if a server failed: its time has no bound."""
    if not (row.unfinished or baseline.unfinished) or "server-failed" in row.outcomes + baseline.outcomes:
        return None
    found = ends.compare(row.ends, baseline.ends, row.metric.better, machines.pair(row.machines, baseline.machines))
    return None if found.percent is None else (found.bound, found.percent)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
