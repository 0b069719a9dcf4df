"""Words for figures: how many repeats they rest on, and whether a difference is more than chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Literal

from dnsrig.comparison.summary import VariantRow, comparisons_planned, describe, main_metric, variant_row
from dnsrig.metrics import Metric
from dnsrig.report import figures
from dnsrig.rundir import DNSRIG_LOAD, Outcome, Scalar, Variant
from dnsrig.runs.rows import DamagedFile
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import significance, statistics
from dnsrig.stats.samples import Samples
from dnsrig.stats.statistics import Comparison

Cause = Literal["lateness", "buckets"]
"""Why a latency is known between two ends."""

OF_MEDIANS = "ratio of medians"
OF_ROUNDS = "typical ratio within a round"
OF_MACHINES = "typical ratio to a repeat of the same machine's baseline"
"""What a percentage of the baseline is: one of these, by `significance.by_rounds` and by whether there are several
machines. Its interval is of the same."""


def causes_of_ends(run: Run) -> set[Cause]:
    """Why latencies of ``run`` are known between two ends: of those variants that have lower ends, or of all where none
    has a distribution. Our own `load` has them where it was late, also if its results were imported."""
    with_ends = [variant.id for variant in run.manifest.variants if any(map(_has_ends, run.done(variant.id)))]
    specs = run.manifest.specs
    found = (specs[variant].imported for variant in with_ends or specs)
    return {"lateness" if tool is None or tool.tool == DNSRIG_LOAD else "buckets" for tool in found}


def _has_ends(trial: Trial) -> bool:
    """Whether its distribution has lower ends; a damaged one says nothing."""
    try:
        known = trial.latency
    except DamagedFile:
        return False
    return known is not None and known.lower != known.result


def both_ends(run: Run) -> str:
    """What ``0.20..0.31 ms`` is."""
    causes = causes_of_ends(run)
    if len(causes) > 1:
        return "a tool counts in buckets, or an instrument was late by a known amount, and the truth lies between"
    if causes == {"buckets"}:
        return "the tool counts in buckets, and the truth lies between their ends"
    return "the instrument was late by a known amount, and the truth lies between"


def why_wide(run: Run) -> str:
    """Why an interval is wider than the repeats suggest, if they are known between two ends."""
    causes = causes_of_ends(run)
    if len(causes) > 1:
        return "the interval allows for how late an instrument was, and for a tool's buckets"
    return f"the interval allows for {'the buckets of the tool' if causes == {'buckets'} else 'how late the instrument was'}"


def parameter(run: Run, value: Scalar) -> str:
    """A value of the matrix; a server with its exact version, because its source moves on."""
    server = run.manifest.servers.get(str(value))
    stands_for = figures.STANDS_FOR.get(value)
    if server and stands_for:
        return f"{value} {server.version}: {stands_for}"
    return f"{value} {server.version}" if server else figures.parameter(value)


def outcomes(counts: Counter[Outcome]) -> str:
    """``3``, when all are done; otherwise ``2 done, 1 timeout``."""
    if not counts:
        return "0"
    if set(counts) == {"done"}:
        return str(counts["done"])
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def of_trial(trial: Trial, metric: Metric) -> str:
    """One trial's figure; with ``≥`` where it is only known to be at least that."""
    value = trial.value(metric.name)
    if value is None:
        return figures.NONE
    one, least = statistics.spread([value]), statistics.spread([metric.lower_end(trial, value)])
    return figures.median_and_range(one, metric.unit, censored=metric.at_ceiling(trial, value), lower=least)[0]


def measured(row: VariantRow) -> str:
    """The row's median with its range; for trials at their limit, how far they came."""
    return " ".join(part for part in median_and_range(row.samples, row.metric.unit) if part)


def median_and_range(samples: Samples, unit: str) -> tuple[str, str]:
    """Both of ``samples``, in ``unit``."""
    return figures.median_and_range(
        samples.spread,
        unit,
        censored=samples.censored,
        median_known=samples.has_median,
        lower=samples.lower_spread,
    )


def is_between(row: VariantRow) -> bool:
    """Whether ``measured`` shows two ends."""
    return ".." in measured(row).partition("[")[0]


def progress(run: Run, variant: Variant) -> str:
    """Why trials did not finish, each reason once: ``612 of 10,000 zones after 60 s``."""
    reasons = [t.record.reason for t in run.of_variant(variant.id) if t.record.outcome != "done" and t.record.reason]
    counted = Counter(reasons)
    return "; ".join(f"{reason} (×{count})" if count > 1 else reason for reason, count in counted.items())


def asked(run: Run, row: VariantRow) -> str:
    """``at 10,000 queries/s [7,600..18,000]``: a latency has its rate with it, which may be a share of what a server
    can."""
    if row.metric.unit != "ms":
        return ""
    rates = variant_row(run, row.variant, describe("asked_qps"))
    return f"at {figures.spread(rates.samples.spread, rates.metric.unit)}" if rates.samples.spread else ""


def relative(run: Run, row: VariantRow) -> str:
    """The row in percent of its baseline, ``111 %``, or why there is no such figure."""
    if row.baseline is None:
        return figures.NONE
    if row.is_baseline:
        return (
            "baseline" if row.samples or not row.outcomes else f"baseline, without a figure: {outcomes(row.outcomes)}"
        )
    if row.stand_in is not None and row.against is None:
        return "replaces the baseline"
    of_what = f" of {_on_axes(run, row.stand_in)}" if row.stand_in else ""
    if row.bound is not None:
        sign, percent = row.bound
        return f"{sign} {figures.figure(percent, '%')}{of_what}".lstrip()
    if row.comparison is None or row.comparison.percent is None:
        return why_not_compared(run, row)
    if is_told(run, row):
        return figures.percent(row.comparison) + of_what
    return f"no difference above the error of {figures.figure(instrument_error(run, row), row.metric.unit)}"


def why_not_compared(run: Run, row: VariantRow) -> str:
    """``not compared``, and ``baseline: 5 invalid`` where that is why; the row's own outcomes are next to it."""
    outcomes_of_baseline = variant_row(run, row.against, row.metric).outcomes if row.against else Counter()
    if row.samples and not row.unfinished and set(outcomes_of_baseline) - {"done"}:
        return f"not compared: baseline {outcomes(outcomes_of_baseline)}"
    return "not compared"


def _on_axes(run: Run, variant: Variant) -> str:
    """The values of ``variant`` on the axes of the baseline."""
    return " ".join(
        figures.parameter(variant.parameters[axis]) for axis in run.manifest.baseline if axis in variant.parameters
    )


def beneath(run: Run, row: VariantRow) -> str:
    """What stands beneath ``relative``: its interval, ``[109..116]``."""
    return figures.interval(row.comparison) if is_told(run, row) else ""


def disagreement(comparison: Comparison | None) -> str:
    """A sentence if the means differ from the percentage: they lie outside of its interval, or on the
    other side of 100 %. A few repeats far from the others do that, and the percentage does not show them."""
    if comparison is None or comparison.percent is None or comparison.of_mean is None:
        return ""
    means, interval = comparison.of_mean.mean, comparison.interval
    outside = interval is not None and not interval.low <= means <= interval.high
    if not outside and (means - 100) * (comparison.percent - 100) >= 0:
        return ""
    shown = figures.figure(means, "%")
    return (
        f"but the means are {shown}: a few repeats are far from the others"
        if shown != figures.percent(comparison)
        else ""
    )


def of_what(rows: Sequence[VariantRow]) -> str:
    """What a percentage is, and the interval beneath it."""
    compared = [row.comparison for row in rows if row.comparison]
    if any(comparison.by_rounds for comparison in compared):
        return OF_ROUNDS
    return OF_MACHINES if any(comparison.by_machines for comparison in compared) else OF_MEDIANS


def reach(run: Run, rows: Sequence[VariantRow]) -> str:
    """Which p is the least that the comparisons under the main metric can have; empty where nothing is compared."""
    comparisons = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    by_variant = {row.variant.id: len(row.samples) for row in rows}
    compared = [(by_variant[row.variant.id], by_variant[row.against.id]) for row in rows if row.against]
    measured = [both for both in compared if min(both) > 0]
    if not measured:
        return ""
    most = max(measured, key=lambda both: (min(both), max(both)))
    return significance.reach(*most, comparisons, machines=max(1, len(run.manifest.machines)))


def is_told(run: Run, row: VariantRow) -> bool:
    """Whether there is a percentage of the baseline, and the difference is one that the instrument can see."""
    if row.comparison is None or row.comparison.percent is None:
        return False
    error = instrument_error(run, row)
    return error is None or abs(row.comparison.difference or 0.0) >= error


def judgement(row: VariantRow) -> str:
    """What follows from the interval and the test of a comparison, in a few words."""
    if row.comparison is None or row.comparison.percent is None:
        return ""
    if row.comparison.interval is None and row.comparison.by_machines:
        return "no interval: too few repeats on each machine"
    if row.comparison.interval is None:
        return f"points and range only: fewer than {statistics.FEWEST_REPEATS} repeats"
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
        if (value := trial.value("probe_resolution_s")) is not None
    ]
    if not resolutions:
        return None
    if row.metric.name == main_metric(run) and row.metric.unit == "s":
        return median(resolutions)
    if row.metric.name == "time_per_zone_ms":
        zones = run.manifest.specs[row.variant.id].dataset.zones
        return 1e3 * median(resolutions) / max(1, zones)
    return None
