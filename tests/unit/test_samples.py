"""Figures known between two ends: what is told of them holds at both, and a late instrument leaves more than nothing to
say."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_data import LoadPlan, build
from synthetic import known

from dnsrig.comparison import thresholds
from dnsrig.comparison.compare import compare_runs, compare_within
from dnsrig.comparison.summary import VariantRow, metric_tables, variant_table
from dnsrig.comparison.thresholds import Repeats, judge
from dnsrig.report import comparison, figures, terminal_table, wording
from dnsrig.report.gather import gather
from dnsrig.report.page import answer
from dnsrig.runs import lag
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.run import Run
from dnsrig.stats import samples, statistics
from dnsrig.stats.samples import Sample, Samples
from dnsrig.stats.statistics import Change, Comparison, Interval

BIND, KNOT, ECHO = "bind@system", "knot@system", "echo@engine"
FAST = [0.20, 0.21, 0.22, 0.23, 0.24]
times = st.lists(st.floats(0.1, 100), min_size=5, max_size=8)


def ends(low: list[float], high: list[float]) -> Samples:
    """Samples between these ends; infinite: nothing is known above."""
    both = zip(low, high, strict=True)
    return Samples(Sample(least if math.isinf(most) else most, least, math.isinf(most)) for least, most in both)


def between(low: list[float], wider: float) -> Samples:
    return ends(low, [value + wider for value in low])


def change(ours: Samples, theirs: Samples) -> Change:
    found = samples.compare(ours, theirs, "lower")
    return replace(found, p_corrected=found.p).change if found.p is not None else found.change


def test_a_difference_is_told_where_it_holds_at_both_ends() -> None:
    slower = [2 * value for value in FAST]
    assert change(between(slower, 0.0), between(FAST, 0.0)) == "worse"
    assert change(between(slower, 0.1), between(FAST, 0.1)) == "worse", "0.40 is above 0.34"
    assert change(between(slower, 0.3), between(FAST, 0.3)) == "undecided", "0.40 is below 0.54"
    assert change(between(FAST, 0.1), between(slower, 0.1)) == "better"


def test_what_reached_its_ceiling_is_told_apart_from_what_is_far_below() -> None:
    beyond = ends([1000.0] * 5, [math.inf] * 5)
    found = samples.compare(beyond, between(FAST, 0.1), "lower")
    assert found.p == pytest.approx(2 / 252)
    assert found.interval is not None and found.interval.low > 100_000 and math.isinf(found.interval.high)
    assert change(beyond, between(FAST, 0.1)) == "worse" and change(between(FAST, 0.1), beyond) == "better"
    assert samples.compare(beyond, beyond, "lower").percent is None, "of neither anything is known above"
    assert change(ends([0.1] * 5, [math.inf] * 5), between(FAST, 0.0)) == "undecided", "it may be larger or smaller"


@given(times, times, st.floats(0, 50), st.floats(0, 50))
def test_wider_intervals_never_tell_more(ours: list[float], theirs: list[float], one: float, other: float) -> None:
    exact = change(between(ours, 0), between(theirs, 0))
    assert change(between(ours, one), ends([max(1e-3, v - other) for v in theirs], theirs)) in (
        "undecided",
        exact,
        "worse",
    )
    if exact == "undecided":
        straddling = ends([v / (1 + one) for v in ours], [v * (1 + one) for v in ours])
        assert change(straddling, between(theirs, 0)) == "undecided"


def test_rules_hold_at_both_ends_too() -> None:
    def repeats(low: list[float], wider: float) -> Repeats:
        from collections import Counter

        return Repeats(between(low, wider), Counter({"done": len(low)}))

    def decision(new: Repeats, base: Repeats) -> str:
        return judge([(thresholds.parse("p99_ms > 110 %"), base, new)])[0].decision

    slower = [2 * value for value in FAST]
    assert decision(repeats(slower, 0.1), repeats(FAST, 0.1)) == "regression"
    assert decision(repeats(slower, 0.3), repeats(FAST, 0.3)) == "undecided"
    assert decision(repeats(FAST, 0.01), repeats(slower, 0.01)) == "pass"
    assert decision(repeats(FAST, 0.5), repeats(slower, 0.5)) == "undecided"


def rows_of(run: Run, metric: str = "p99_ms") -> dict[str, VariantRow]:
    return {str(row.variant.parameters["server"]): row for row in variant_table(run, metric)}


def test_a_late_instrument_gives_both_ends_and_what_is_far_off_is_told(tmp_path: Path) -> None:
    """Each query was sent 0.1 ms late: 0.3 ms may have been 0.2, and 0.3 against a second is no question."""
    late = dict.fromkeys((BIND, KNOT), 100)
    plan = LoadPlan(servers=[BIND, KNOT], repeats=5, seconds=2, late_us=late, timeouts={KNOT: 100})
    run = Run.open(build(tmp_path / "run", plan))
    rows = rows_of(run)
    assert wording.measured(rows[BIND]).startswith("0.5")  # 0.56..0.66 ms: lower end to upper end
    low, _, high = wording.measured(rows[BIND]).partition(" ms")[0].partition("..")
    assert float(high) - float(low) == pytest.approx(0.1, abs=0.002)
    assert rows[KNOT].comparison is not None and rows[KNOT].comparison.change == "worse"
    assert wording.relative(run, rows[KNOT]).startswith("≥ ")
    assert wording.of_trial(run.of_variant(rows[BIND].variant.id)[0], rows[BIND].metric).count("..") == 1
    text = json.dumps(
        comparison.as_json(compare_runs(run, run, ["p50"], [thresholds.parse("p99 > 110 %")])), allow_nan=False
    )
    assert '"lower"' in text
    assert any("the instrument was late by a known amount" in note for note in terminal_table(run).notes)


def test_a_difference_as_large_as_the_lateness_is_not_told(tmp_path: Path) -> None:
    """Medians of 180 and 90 µs, and 100 µs of lateness: at the ends they change places."""
    plans = {
        name: LoadPlan(servers=[BIND, KNOT], repeats=6, seconds=2, late_us=dict.fromkeys((BIND, KNOT), us))
        for name, us in (("in time", 1), ("late", 100))
    }
    changes = {}
    for name, plan in plans.items():
        run = Run.open(build(tmp_path / name, plan))
        table = next(rows for metric, rows in metric_tables(run) if metric.name == "p50_ms")
        changes[name] = [row.comparison.change for row in table if row.comparison]
    assert changes == {"in time": ["better"], "late": ["undecided"]}


def test_runs_of_earlier_versions_have_one_end(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=[BIND, KNOT], repeats=5, seconds=2)))
    for row in rows_of(run).values():
        assert row.samples.is_exact
        assert ".." not in wording.measured(row).partition("[")[0]


@pytest.mark.parametrize(
    ("lower_ms", "upper_ms", "too_wide"),
    [
        (0.2, 0.33, False),
        (0.02, 0.9, False),
        (0.3, 2.5, False),
        (0.1, 3.0, True),
        (5.0, 40.0, False),
        (1.0, 12.0, True),
    ],
)
def test_only_an_interval_that_allows_no_statement_is_too_wide(
    lower_ms: float, upper_ms: float, too_wide: bool
) -> None:
    load: dict[str, Any] = {
        "lag_ns": {"p99": 1e6 * (upper_ms - lower_ms)},
        "sent_latency_ns": {"p99": 1e6 * lower_ms},
        "latency_ns": {"p99": 1e6 * upper_ms},
        "lower_latency_ns": {"p99": 1e6 * lower_ms},
    }
    assert bool(lag.why_not(LoadResult.model_validate(load))) == too_wide


def test_a_baseline_of_invalid_trials_does_not_empty_the_table(tmp_path: Path) -> None:
    plan = LoadPlan(repeats=5, seconds=2, invalid=[BIND])
    run = Run.open(build(tmp_path / "run", plan))
    rows = rows_of(run)
    assert wording.relative(run, rows[BIND]) == "baseline, without a figure: 5 invalid"
    assert wording.relative(run, rows[KNOT]) == "replaces the baseline"
    assert wording.relative(run, rows[ECHO]).endswith(f" % of {KNOT}")
    assert rows[ECHO].comparison is not None and rows[ECHO].comparison.change == "better"
    said = " ".join(" ".join(cells) for cells in terminal_table(run).rows)
    assert "5 invalid" in said and "replaces" in said


def test_one_repeat_at_its_ceiling_leaves_the_median_as_it_is() -> None:
    """Four of five are known, and the fifth is larger than all: the ratio of medians is exact, and there is no mean."""
    base = ends([10.0, 11.0, 12.0, 13.0, 1000.0], [10.0, 11.0, 12.0, 13.0, math.inf])
    ours = [value / 2 for value in (10.0, 11.0, 12.0, 13.0, 14.0)]
    found = samples.compare(ends(ours, ours), base, "lower")
    assert (found.percent, found.bound, found.of_mean) == (50.0, "", None)
    assert found.interval is not None and found.interval.low <= 50 <= found.interval.high < 100
    turned = samples.compare(base, ends(ours, ours), "lower")
    assert (turned.percent, turned.bound) == (200.0, "")
    both = samples.compare(base, base, "lower")
    assert both.percent == 100.0, "both medians are known"
    most = ends([10.0, 11.0, *[1000.0] * 3], [10.0, 11.0, *[math.inf] * 3])
    assert samples.compare(ends(ours, ours), most, "lower").bound == "≤"
    assert samples.compare(most, ends(ours, ours), "lower").bound == "≥"


@given(times, times, st.integers(0, 8), st.integers(0, 8))
def test_a_percentage_and_its_interval_are_of_one_estimator(
    ours: list[float], theirs: list[float], of_ours: int, of_theirs: int
) -> None:
    """Whatever reached a ceiling: the percentage is never outside of the interval beneath it."""
    sides = [
        ends(values, [value if place >= beyond else math.inf for place, value in enumerate(values)])
        for values, beyond in ((ours, of_ours), (theirs, of_theirs))
    ]
    found = samples.compare(*sides, "lower")
    if found.percent is not None and found.interval is not None:
        assert found.interval.low <= found.percent * (1 + 1e-9) and found.percent <= found.interval.high * (1 + 1e-9)
    if found.change != "undecided":
        assert (found.percent or 0) != 100


def with_times(tmp_path: Path, bind: list[float], knot: list[float]) -> Run:
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=[BIND, KNOT], repeats=len(bind), seconds=2)))
    for trial in run.trials:
        values = bind if trial.record.spec.variant.parameters["server"] == BIND else knot
        known(trial, p99_ms=values[trial.record.spec.repeat - 1])
    return run


def test_a_cell_shows_one_estimate_and_a_sentence_where_the_means_disagree(tmp_path: Path) -> None:
    """By medians Knot takes 90 %, by means 1.6 times as long, as one of its repeats was slow."""
    run = with_times(tmp_path, [1.0, 1.01, 1.02, 1.03, 1.04], [0.9, 0.91, 0.92, 0.93, 4.5])
    row = rows_of(run)[KNOT]
    assert wording.relative(run, row) == "90.2 %" and wording.beneath(run, row).startswith("[87.5..")
    said = "but the means are 160 %: a few repeats are far from the others"
    assert wording.disagreement(row.comparison) == said
    (line,) = answer(run, gather(run, []))[1:]
    assert (line.relative, line.disagreement) == ("90.2 %", said)
    assert any(said in note for note in terminal_table(run, []).notes)
    found = compare_within(run, {}, [], [])
    assert any(said in sentence for sentence in comparison.sentences(found))
    assert comparison.as_json(found)["comparisons"][0]["percent_of_means"] == pytest.approx(160.0)


def test_where_means_and_medians_agree_nothing_is_said(tmp_path: Path) -> None:
    run = with_times(tmp_path, [1.0, 1.01, 1.02, 1.03, 1.04], [0.9, 0.91, 0.92, 0.93, 0.94])
    assert wording.disagreement(rows_of(run)[KNOT].comparison) == ""


def test_a_repeat_at_the_timeout_is_a_repeat(tmp_path: Path) -> None:
    """Every row has five repeats, so no sentence mentions four."""
    run = with_times(tmp_path, [1.0, 1.01, 1.02, 1.03, 1000.0], [0.9, 0.91, 0.92, 0.93, 0.94])
    rows = rows_of(run)
    assert len(rows[BIND].samples.measured) == 4 and rows[BIND].outcomes.total() == 5
    said = wording.reach(run, list(rows.values()))
    assert said == "with 5 repeats and 1 comparison the least p is 0.0079"
    assert wording.relative(run, rows[KNOT]) == "90.2 %", "the median of BIND is known"
    assert wording.measured(rows[BIND]) == "1.02 ms [1.00..≥1,000]"


def test_what_has_no_figure_is_not_compared(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", LoadPlan(servers=[BIND, KNOT], repeats=5, seconds=2, invalid=[KNOT])))
    assert wording.relative(run, rows_of(run)[KNOT]) == "not compared"
    both = Run.open(
        build(tmp_path / "both", LoadPlan(servers=[BIND, KNOT], repeats=5, seconds=2, invalid=[BIND, KNOT]))
    )
    assert wording.relative(both, rows_of(both)[BIND]) == "baseline, without a figure: 5 invalid"


def test_both_ends_are_shown_where_they_are_to_be_seen() -> None:
    upper, lower = statistics.spread([0.30, 0.31, 0.32]), statistics.spread([0.19, 0.20, 0.21])
    assert figures.spread(upper, "ms", lower=lower) == "0.200..0.310 ms [0.190..0.320]"
    assert figures.spread(upper, "ms", lower=upper) == "0.310 ms [0.300..0.320]"
    same = statistics.spread([0.30, 0.31, 0.32])
    assert figures.spread(upper, "ms", lower=same) == figures.spread(upper, "ms")
    assert figures.spread(upper, "ms", censored=True, lower=lower) == "0.200..≥0.310 ms [0.190..≥0.320]"


def of_percent(percent: float | None, p: float | None) -> Comparison:
    return Comparison(percent, None, None, p, "lower")


@pytest.mark.parametrize(
    ("least", "most", "p"),
    [
        (of_percent(101, 0.01), of_percent(120, 0.001), 0.01),
        (of_percent(80, 0.001), of_percent(99, 0.02), 0.02),
        (of_percent(99, 0.01), of_percent(101, 0.02), 1.0),
        (of_percent(100, 0.01), of_percent(120, 0.02), 1.0),  # at one end they are equal
        (of_percent(80, 0.01), of_percent(100, 0.02), 1.0),
        (None, of_percent(99, 0.02), 0.02),
        (None, of_percent(101, 0.02), 1.0),
        (of_percent(101, 0.01), None, 0.01),
        (of_percent(100, None), of_percent(100, None), None),
        (of_percent(100, 0.5), None, 1.0),
        (None, None, None),
    ],
)
def test_p_is_that_of_the_end_at_which_less_differs(
    least: Comparison | None, most: Comparison | None, p: float | None
) -> None:
    assert samples._p(least, most) == p


def test_an_interval_covers_both_ends() -> None:
    one, other = (replace(of_percent(100, 0.5), interval=Interval(low, low + 20, 0.95)) for low in (80.0, 90.0))
    without = of_percent(100, 0.5)
    assert samples._hull(one, other) == Interval(80, 110, 0.95)
    assert samples._hull(one, None) == Interval(80, math.inf, 0.95)
    assert samples._hull(None, other) == Interval(0, 110, 0.95)
    assert samples._hull(one, without) is samples._hull(without, other) is samples._hull(None, None) is None
