from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from synthetic import Plan, build
from trial_data import clean_trial

from dnsrig.comparison.summary import VariantRow, baseline_of, describe, lower_bound, summarise, variant_table
from dnsrig.runs.run import Run

BIND, KNOT = "bind@system", "knot@system"


def table(path: Path, plan: Plan, metric: str = "transfer_time_s") -> dict[tuple[object, ...], VariantRow]:
    run = Run.open(build(path, plan))
    return {tuple(row.variant.parameters.values()): row for row in variant_table(run, metric)}


def test_the_summary_has_a_row_for_each_trial_and_metric(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path, Plan(repeats=2, samples=False)))
    frame = summarise(run)
    metrics = len(run.trials[0].metrics)
    assert frame.height == 2 * 2 * 2 * metrics
    assert frame.columns == (
        ["run", "experiment", "variant", "server", "zones", "repeat", "outcome", "metric", "unit", "value"]
    )
    assert frame.schema["zones"] == pl.String
    assert frame.filter(pl.col("metric") == "transfer_time_s")["value"].null_count() == 0


def test_a_limit_has_no_value_in_the_summary(tmp_path: Path) -> None:
    plan = Plan(repeats=1, samples=False, outcomes={(BIND, 100, 1): "timeout"})
    frame = summarise(Run.open(build(tmp_path, plan)))
    row = frame.filter((pl.col("outcome") == "timeout") & (pl.col("metric") == "transfer_time_s"))
    assert row["value"].to_list() == [None]


def test_an_axis_named_as_a_column_keeps_both(tmp_path: Path) -> None:
    plan = Plan(repeats=1, zones=[10], samples=False, extra_axes={"repeat": ["a"]})
    frame = summarise(Run.open(build(tmp_path, plan)))
    assert frame["axis.repeat"].to_list()[0] == "a"
    assert frame["repeat"].to_list()[0] == 1


def test_a_run_without_trials_has_an_empty_summary(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path, Plan(repeats=0)))
    assert summarise(run).is_empty()
    assert all(row.samples.spread is None and not row.outcomes for row in variant_table(run, "transfer_time_s"))


def test_the_baseline_has_the_same_other_axes(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path, Plan(repeats=0)))
    knot_1000 = next(v for v in run.manifest.variants if v.parameters == {"server": KNOT, "zones": 1000})
    baseline = baseline_of(run, knot_1000)
    assert baseline is not None
    assert baseline.parameters == {"server": BIND, "zones": 1000}


def test_no_baseline_no_comparison(tmp_path: Path) -> None:
    rows = table(tmp_path, Plan(repeats=2, samples=False, baseline={}))
    assert all(row.comparison is None and row.baseline is None for row in rows.values())


def test_five_repeats_are_compared_and_corrected(tmp_path: Path) -> None:
    rows = table(tmp_path, Plan(repeats=5, samples=False))
    comparison = rows[KNOT, 1000].comparison
    assert comparison is not None
    assert comparison.percent is not None
    assert comparison.percent < 100
    # Two comparisons (100 and 1000 zones), both with p = 2/252 at best.
    assert comparison.p == pytest.approx(2 / 252)
    assert comparison.p_corrected == pytest.approx(4 / 252)
    assert rows[BIND, 1000].is_baseline
    assert rows[BIND, 1000].comparison is None


def test_a_limit_makes_the_median_a_lower_bound_and_stops_comparing(tmp_path: Path) -> None:
    plan = Plan(repeats=5, samples=False, outcomes={(KNOT, 1000, 1): "timeout"})
    row = table(tmp_path, plan)[KNOT, 1000]
    assert row.samples.censored
    assert row.samples.bounds == [60.0]
    assert row.samples.spread is not None
    assert row.samples.spread.n == 5
    assert row.samples.spread.high == 60.0
    assert row.samples.interval is None
    assert row.comparison is not None
    assert row.comparison.percent is None


def test_most_repeats_at_the_limit_put_the_median_there(tmp_path: Path) -> None:
    outcomes = {(KNOT, 1000, repeat): "timeout" for repeat in (1, 2, 3)}
    row = table(tmp_path, Plan(repeats=5, samples=False, outcomes=outcomes))[KNOT, 1000]  # type: ignore[arg-type]
    assert row.samples.spread is not None
    assert row.samples.spread.median == 60.0


def test_the_lower_bound_of_a_zone_is_its_share_of_the_limit(tmp_path: Path) -> None:
    plan = Plan(repeats=1, samples=False, outcomes={(KNOT, 1000, 1): "timeout"})
    assert table(tmp_path, plan, "time_per_zone_ms")[KNOT, 1000].samples.bounds == [60.0]


def test_other_metrics_of_a_variant_at_its_limit_are_not_compared_either(tmp_path: Path) -> None:
    plan = Plan(repeats=6, samples=False, outcomes={(KNOT, 1000, 1): "timeout"})
    row = table(tmp_path, plan, "secondary_cpu_s")[KNOT, 1000]
    assert not row.samples.censored
    assert len(row.samples.measured) == 5
    assert row.comparison is not None
    assert row.comparison.percent is None


@pytest.mark.parametrize("outcome", ["invalid", "server-failed", "error"])
def test_what_is_not_done_gives_no_figure(tmp_path: Path, outcome: str) -> None:
    plan = Plan(repeats=3, samples=False, outcomes={(KNOT, 1000, 1): outcome})  # type: ignore[dict-item]
    row = table(tmp_path, plan)[KNOT, 1000]
    assert len(row.samples.measured) == 2
    assert row.outcomes == {"done": 2, outcome: 1}


def test_an_unknown_metric_is_described_by_its_name() -> None:
    assert describe("of_tomorrow_s").title == "of_tomorrow_s"


def test_a_limit_on_one_side_bounds_the_percentage(tmp_path: Path) -> None:
    slow_base = table(tmp_path / "a", Plan(repeats=2, samples=False, outcomes={(BIND, 100, 1): "timeout"}))
    bound = slow_base[KNOT, 100].bound
    assert bound is not None
    assert bound[0] == "≤"
    times = slow_base[KNOT, 100].samples.measured
    base = [*slow_base[BIND, 100].samples.measured, 60.0]
    assert bound[1] == pytest.approx(100 * sum(times) / sum(base))
    slow_variant = table(tmp_path / "b", Plan(repeats=2, samples=False, outcomes={(KNOT, 100, 1): "timeout"}))
    assert (slow_variant[KNOT, 100].bound or ("", 0))[0] == "≥"
    assert slow_variant[KNOT, 1000].bound is None, "both finished: compared"


@pytest.mark.parametrize("of_base", ["timeout", "server-failed"])
def test_nothing_is_known_where_both_hit_their_limit_or_one_failed(tmp_path: Path, of_base: str) -> None:
    outcomes = {(BIND, 100, 1): of_base, (KNOT, 100, 2): "timeout"}
    row = table(tmp_path, Plan(repeats=2, samples=False, outcomes=outcomes))[KNOT, 100]  # type: ignore[arg-type]
    assert row.bound is None


@pytest.mark.parametrize(("probe_s", "least_s"), [(None, 60), (-0.5, 59.5), (0.0, 60), (0.5, 60)])
def test_a_trial_at_its_limit_took_as_long_as_it_was_watched(
    tmp_path: Path, probe_s: float | None, least_s: float
) -> None:
    """``probe_s``: when the probe, which ends at the limit, started."""
    trial = clean_trial(tmp_path / "run")
    assert trial.zero_ns is not None
    if probe_s is not None:
        trial.record.instruments["probe"]["started_ns"] = trial.zero_ns + round(probe_s * 1e9)
    assert lower_bound(trial, "transfer_time_s") == least_s
    assert lower_bound(trial, "time_per_zone_ms") == 10 * least_s, "it has 100 zones"
    assert lower_bound(trial, "zones_per_s") is None
    trial.record.spec.main_metric = "p99_ms"
    assert lower_bound(trial, "p99_ms") is lower_bound(trial, "time_per_zone_ms") is None
