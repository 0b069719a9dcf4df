"""Repeats of one run compared round by round, and the choice of the test before any result is known."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import Plan, build

from dnsrig.comparison.summary import compare_two, metric_tables, variant_table
from dnsrig.report import terminal_table, wording, write_report
from dnsrig.runs.run import Run
from dnsrig.stats import rounds, significance, statistics
from dnsrig.stats.rounds import signed_rank_test, typical_ratio

BIND, KNOT = "bind@system", "knot@system"


def brute_force(differences: list[int]) -> float:
    """All signs, by the definition and nothing else."""
    sizes = [abs(d) for d in differences]
    ranks = [sum(y < x for y in sizes) + (sum(y == x for y in sizes) + 1) / 2 for x in sizes]
    ranks, signs = [r for r, d in zip(ranks, differences) if d], [d > 0 for d in differences if d]
    expected = sum(ranks) / 2
    distance = abs(sum(r for r, sign in zip(ranks, signs) if sign) - expected)
    sums = [sum(itertools.compress(ranks, chosen)) for chosen in itertools.product((0, 1), repeat=len(ranks))]
    return sum(abs(total - expected) >= distance - 1e-9 for total in sums) / len(sums)


@given(st.lists(st.integers(-5, 5), min_size=5, max_size=9))
def test_the_signed_rank_test_agrees_with_brute_force(differences: list[int]) -> None:
    assert signed_rank_test([float(d) for d in differences]) == pytest.approx(brute_force(differences))


def test_known_signed_rank_tests() -> None:
    assert signed_rank_test([1.0, 2.0, 3.0, 4.0, 5.0]) == 2 / 32, "five pairs cannot go lower"
    assert signed_rank_test([float(d) for d in range(1, 11)]) == 2 / 1024
    # Tables of the signed-rank sum: for n = 10 the two-sided 5 % point is 8, with p = 50/1024.
    assert signed_rank_test([-8.0, *(float(d) for d in (1, 2, 3, 4, 5, 6, 7, 9, 10))]) == 50 / 1024
    assert signed_rank_test([0.0] * 6) == 1.0
    assert signed_rank_test([1.0] * 4) is None


@given(st.lists(st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)), min_size=8, max_size=12))
def test_the_interval_leaves_out_no_difference_only_where_the_test_rejects(pairs: list[tuple[float, float]]) -> None:
    p = signed_rank_test([math.log(a / b) for a, b in pairs])
    found = typical_ratio(pairs)
    assert p is not None and found is not None
    ratio, interval = found
    assert interval.low <= ratio <= interval.high
    if p > 0.05:
        assert interval.low <= 1 <= interval.high


@pytest.mark.parametrize("sign", [1, -1])
def test_with_ties_too_the_interval_keeps_no_difference_where_the_test_does_not_reject(sign: int) -> None:
    logs = [sign * log for log in (-2, 1, 1, 1, 1, 1, 1, 1, 3, 3)]
    assert signed_rank_test([float(log) for log in logs]) == 60 / 1024
    found = typical_ratio([(2.0**log, 1.0) for log in logs])
    assert found is not None
    ratio, interval = found
    assert ratio == pytest.approx(2**sign)
    assert 1 in (interval.low, interval.high), "by the ranks without ties it would end at the root of 2, or begin there"


def test_drift_between_rounds_is_not_in_their_ratio() -> None:
    noise = random.Random(5)
    base = [10.0 * 1.2**place * noise.uniform(0.99, 1.01) for place in range(10)]
    ours = [1.1 * value * noise.uniform(0.99, 1.01) for value in base]
    unpaired = statistics.compare(ours, base, "lower")
    assert unpaired.p is not None and unpaired.p > 0.5
    found = rounds.compared(list(zip(ours, base)), unpaired)
    assert found.by_rounds and found.p == 2 / 1024
    assert found.percent == pytest.approx(110, abs=1) and found.interval is not None and found.interval.low > 108


def test_values_of_zero_are_compared_without_rounds() -> None:
    unpaired = statistics.compare([0.0, *[1.0] * 9], [2.0] * 10, "lower")
    assert rounds.compared([(0.0, 2.0), *[(1.0, 2.0)] * 9], unpaired) is unpaired


@pytest.mark.parametrize(
    ("repeats", "comparisons", "by_rounds"),
    [
        (5, 1, False),
        (7, 1, False),
        (8, 1, True),
        (8, 2, False),
        (9, 2, True),
        (10, 5, True),
        (10, 6, False),
        (12, 20, True),
    ],
)
def test_the_number_of_repeats_and_comparisons_chooses(repeats: int, comparisons: int, by_rounds: bool) -> None:
    assert significance.by_rounds(repeats, comparisons) == by_rounds


def test_the_least_p_is_what_complete_separation_gives() -> None:
    low, high = [float(n) for n in range(1, 6)], [float(n) for n in range(6, 11)]
    assert significance.least_p(5, 5, 1) == pytest.approx(statistics.rank_test(low, high))
    assert significance.least_p(10, 10, 5) == 5 * 2 / 1024
    assert significance.least_p(10, 10, 5, one_run=False) == 5 * 2 / math.comb(20, 10)
    assert significance.least_p(3, 3, 6) == pytest.approx(0.6)
    assert significance.repeats_needed(6) == 5 and significance.repeats_needed(7) == 6
    assert significance.reach(3, 3, 6) == (
        "with 3 repeats and 6 comparisons the least p is 0.6: no difference can be told from chance; at least 5 repeats are needed"
    )
    assert significance.reach(5, 5, 2) == "with 5 repeats and 2 comparisons the least p is 0.016"


@pytest.mark.parametrize("comparisons", [1, 5, 6, 30, 500])
def test_as_many_repeats_as_are_said_to_be_needed_are_enough_and_one_less_is_not(comparisons: int) -> None:
    needed = significance.repeats_needed(comparisons)
    assert significance.can_tell(needed, needed, comparisons)
    assert not significance.can_tell(needed - 1, needed - 1, comparisons)


def test_false_alarms_are_as_many_as_allowed() -> None:
    """In virtual data of two like variants that drift together: 5 % at most, within what chance allows of so many
    sets."""
    noise, alarms, sets = random.Random(1), 0, 1000
    for _ in range(sets):
        drift = [noise.gauss(0, 1) for _ in range(10)]
        alarms += (signed_rank_test([noise.gauss(0, 1) - noise.gauss(0, 1) + d - d for d in drift]) or 1) < 0.05
    assert alarms / sets < 0.05 + 3 * math.sqrt(0.05 * 0.95 / sets)


def drifting(tmp_path: Path, repeats: int = 10, **outcomes: object) -> Run:
    """Each round takes a fifth longer than the one before; the synthetic Knot DNS is faster than BIND by a third."""
    slow = {(name, zones, r): 1.2**r for name in (BIND, KNOT) for zones in (100, 1000) for r in range(1, repeats + 1)}
    plan = Plan(servers=[BIND, KNOT], zones=[100, 1000], repeats=repeats, samples=False, slow=slow, **outcomes)  # type: ignore[arg-type]
    return Run.open(build(tmp_path / "run", plan))


@pytest.mark.full
def test_a_run_of_ten_rounds_is_compared_round_by_round(tmp_path: Path) -> None:
    run = drifting(tmp_path)
    rows = variant_table(run, "transfer_time_s")
    compared = [row.comparison for row in rows if row.comparison is not None]
    assert [comparison.by_rounds for comparison in compared] == [True, True]
    assert {comparison.change for comparison in compared} == {"better"}
    unpaired = statistics.rank_test(rows[2].samples.measured, rows[0].samples.measured)
    assert unpaired is not None and unpaired > 0.05, "all repeats together do not tell it"
    page = write_report(run.directory).path.read_text()
    assert "the typical ratio within a round" in page
    assert "with 10 repeats and 2 comparisons the least p is 0.0039" in page


def test_a_round_that_one_of_them_lacks_has_them_compared_as_they_are(tmp_path: Path) -> None:
    run = drifting(tmp_path, outcomes={(KNOT, 100, 3): "invalid"})
    by_rounds = {
        row.variant.label: row.comparison.by_rounds for row in variant_table(run, "transfer_time_s") if row.comparison
    }
    assert by_rounds == {f"server={KNOT} zones=100": False, f"server={KNOT} zones=1000": True}


def test_five_repeats_are_compared_as_they_are(tmp_path: Path) -> None:
    rows = variant_table(drifting(tmp_path, repeats=5), "transfer_time_s")
    assert not any(row.comparison.by_rounds for row in rows if row.comparison)


def test_all_other_metrics_are_corrected_together(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", Plan(repeats=5, samples=False)))
    tables = {metric.name: rows for metric, rows in metric_tables(run)}
    main = [row.comparison for row in tables["transfer_time_s"] if row.comparison]
    assert all(c.p_corrected == pytest.approx(4 / 252) for c in main), "the answer is corrected by itself"
    others = [
        row.comparison for name, rows in tables.items() if name != "transfer_time_s" for row in rows if row.comparison
    ]
    tested = [c for c in others if c.p is not None]
    assert len(tested) > 6
    least = min(c.p_corrected for c in tested if c.p_corrected is not None)
    assert least == pytest.approx(min(1.0, len(tested) * 2 / 252))
    assert {c.change for c in others} == {"undecided"}, "with five repeats so many comparisons tell nothing"


@pytest.mark.parametrize("metric", ["transfer_time_s", "zones_per_s"])
def test_a_comparison_of_two_variants_is_the_one_that_the_tables_show(tmp_path: Path, metric: str) -> None:
    """Eight rounds suffice for the test of rounds with one comparison, and not with six: who asks for a single pair
    must not get another answer than the report's reader."""
    names = [BIND, *(f"knot@/{letter}" for letter in "abcdef")]
    run = Run.open(build(tmp_path / "run", Plan(servers=names, zones=[100], repeats=8, samples=False)))
    tables = {described.name: rows for described, rows in metric_tables(run)}
    base, *others = tables[metric]
    assert not any(row.comparison.by_rounds for row in others if row.comparison)
    for row in others:
        found = compare_two(run, row.variant, base.variant, row.metric)
        assert row.comparison is not None
        assert (found.p, found.interval, found.percent) == (
            row.comparison.p,
            row.comparison.interval,
            row.comparison.percent,
        )


def test_too_few_repeats_for_the_comparisons_are_told(tmp_path: Path) -> None:
    names = [BIND, *(f"knot@/{letter}" for letter in "abcdefg")]
    run = Run.open(build(tmp_path / "run", Plan(servers=names, zones=[100], repeats=5, samples=False)))
    said = wording.reach(run, variant_table(run, "transfer_time_s"))
    assert said == (
        "with 5 repeats and 7 comparisons the least p is 0.056: no difference can be told from chance; at least 6 repeats are needed"
    )
    table = terminal_table(run)
    assert any("too-few-repeats" in cells[-1] for cells in table.rows)
    assert f"chance: {said} (after Holm)" in table.notes
