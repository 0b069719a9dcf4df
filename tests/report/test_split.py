"""Which axes decide colours, panels and the names of rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from synthetic import EXEC_NS, Plan, build, known
from trial_data import series

from dnsrig.report.charts import _over_time, _series, _split, timeline
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial


@pytest.mark.parametrize(
    ("axes", "baseline", "colour", "others", "rows"),
    [
        ({"server": 2, "zones": 3, "transport": 2}, "", "server", ["transport"], ["server", "transport"]),
        ({"zones": 3, "transport": 2, "site": 2}, "", "transport", ["site"], ["transport", "site"]),
        ({"zones": 3, "transport": 2, "site": 2}, "site", "site", ["transport"], ["transport", "site"]),
        ({"transport": 2, "server": 2}, "transport", "server", ["transport"], ["transport", "server"]),
        ({"zones": 3, "server": 1, "site": 1}, "", None, [], ["server", "site"]),
        ({"zones": 3}, "", None, [], []),
    ],
)
def test_axes(
    tmp_path: Path, axes: dict[str, int], baseline: str, colour: str | None, others: list[str], rows: list[str]
) -> None:
    """``axes``: how many values each has."""
    run = Run.open(build(tmp_path / "run", Plan(repeats=1, samples=False)))
    run.manifest.axes = {axis: list(range(count)) for axis, count in axes.items()}
    run.manifest.baseline = {baseline: 0} if baseline else {}
    assert _split.colour_axis(run) == colour
    assert _split.other_axes(run) == others
    assert _split.row_axes(run) == rows


@pytest.fixture
def measured(tmp_path: Path) -> Run:
    """Four repeats that are done in 3, 1, 4 and 2 s."""
    run = Run.open(build(tmp_path / "run", Plan(servers=["knot@system"], zones=[100], repeats=4, samples=False)))
    for trial, time_s in zip(run.trials, [3.0, 1.0, 4.0, 2.0], strict=True):
        known(trial, transfer_time_s=time_s, zones_per_s=time_s)
    return run


def results(trials: Iterable[Trial]) -> list[float | None]:
    return [trial.result for trial in trials]


def test_the_best_repeat_comes_first_and_the_better_of_two_is_the_median(measured: Run) -> None:
    assert results(_split.best_first(measured.trials)) == [1, 2, 3, 4]
    for number, middle in ((4, 2), (3, 3), (2, 1), (1, 3)):
        found = _split.median(measured.trials[:number])
        assert found is not None and found.result == middle, number
    assert _split.median([]) is None
    for trial in measured.trials:
        trial.record.spec.main_metric = "zones_per_s"
    assert results(_split.best_first(measured.trials)) == [4, 3, 2, 1], "more is better"
    measured.trials[2].record.outcome = "invalid"
    assert results(_split.best_first(measured.trials)) == [3, 2, 1, 4], "it is not done"


def test_a_trial_ends_with_its_measurement(measured: Run) -> None:
    """`measure` began 0.1 s before exec."""
    trial = measured.trials[0]
    assert trial.measure is not None
    trial.measure.end.monotonic_ns = EXEC_NS + 2_500_000_000
    assert _split.elapsed_s(trial) == 2.5
    trial.record.phases = []
    assert _split.elapsed_s(trial) is None


@pytest.mark.parametrize(("rows", "drawn"), [(0, 0), (1, 1), (400, 400), (401, 201), (800, 400), (801, 267)])
def test_a_line_over_time_has_up_to_400_points(measured: Run, rows: int, drawn: int) -> None:
    """A gauge has the largest value of each stretch, and a rate the mean from one point to the next."""
    trial = measured.trials[0]
    assert trial.measure is not None
    trial.measure.end.monotonic_ns = EXEC_NS + rows * 1_000_000_000
    trial.__dict__["samples"] = series(EXEC_NS, secondary__cgroup__x=list(range(rows)))
    gauge = _series.gauge(trial, "secondary", "cgroup", "x")
    assert gauge.height == drawn and gauge["value"].to_list()[-1:] == ([rows - 1] if rows else [])
    rate = _series.rate(trial, "secondary", "cgroup", "x")
    assert rate.height == max(0, drawn - 1) and rate["value"].to_list() == pytest.approx([1.0] * rate.height)


@pytest.mark.parametrize(("tenths", "drawn"), [(-6, False), (-5, True), (0, True), (15, True), (16, False)])
def test_half_a_second_before_and_after_a_trial_is_drawn(measured: Run, tenths: int, drawn: bool) -> None:
    trial = measured.trials[0]
    assert trial.measure is not None
    trial.measure.end.monotonic_ns = EXEC_NS + 1_000_000_000
    trial.__dict__["samples"] = series(EXEC_NS + tenths * 100_000_000, secondary__cgroup__x=[7])
    assert _series.gauge(trial, "secondary", "cgroup", "x")["value"].to_list() == [7] * drawn


def test_several_series_are_summed_at_the_nearest_times() -> None:
    def of(times: list[float], values: list[float]) -> pl.DataFrame:
        return pl.DataFrame({"time_s": times, "value": values}, schema={"time_s": pl.Float64, "value": pl.Float64})

    assert _series.total([]).is_empty()
    summed = _series.total([of([0, 1, 2], [1, 2, 3]), of([], []), of([0.1, 1.1, 2.1], [10, 20, 30])])
    assert summed.to_dict(as_series=False) == {"time_s": [0, 1, 2], "value": [11, 22, 33]}


@pytest.mark.parametrize(("rows", "drawn"), [(0, 0), (1, 1), (300, 300), (301, 151), (600, 300)])
def test_lines_of_a_picture_have_up_to_300_points(rows: int, drawn: int) -> None:
    found = pl.DataFrame({"line": ["a"] * rows + ["b"] * min(rows, 3), "value": [*range(rows), *range(min(rows, 3))]})
    thinned = _over_time.thinned(found, "line")
    assert thinned.filter(line="a").height == drawn
    assert thinned.filter(line="b").height == (min(rows, 3) if drawn == rows else 2)


@pytest.mark.parametrize(
    ("repeats", "variants", "chosen"),
    [
        (1, 1, {"the median": 3}),
        (2, 1, {"the fastest": 1, "the slowest": 3}),
        (3, 1, {"the fastest": 1, "the median": 3, "the slowest": 4}),
        (4, 12, {"the fastest": 1, "the median": 2, "the slowest": 4}),
        (4, 13, {"the median": 2}),
        (1, 13, {"the median": 3}),
        (0, 1, {}),
    ],
)
def test_of_many_variants_only_the_median_repeat_is_drawn(
    measured: Run, repeats: int, variants: int, chosen: dict[str, float]
) -> None:
    measured.manifest.variants *= variants
    found = timeline._chosen(measured, measured.trials[:repeats])
    assert {role: trial.result for role, trial in found} == chosen
    assert ("only the median" in timeline.caption(measured)) == (variants > 12)


@pytest.mark.parametrize(("most", "rows"), [(1, [1, 1, 1, 1, 1]), (2, [2, 2, 1]), (5, [5]), (6, [5])])
def test_a_panel_has_at_most_so_many_rows(tmp_path: Path, most: int, rows: list[int]) -> None:
    plan = Plan(servers=["knot@system"], zones=[10, 20], repeats=0, extra_axes={"way": list("abcde")}, baseline={})
    run = Run.open(build(tmp_path / "run", plan))
    assert _split.zone_counts(run) == [10, 20]
    assert list(map(len, _split.rows_of(run, 20, most))) == rows
    assert _split.rows_of(run, 30, most) == []
