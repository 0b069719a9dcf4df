"""Repeats on several machines: van Elteren's test, ratios within machines, and what reports and exports show."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from drawn import as_it_was, words_as_they_were
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from synthetic import Plan, build, known

from dnsrig.comparison import thresholds
from dnsrig.comparison.compare import compare_runs
from dnsrig.comparison.summary import summarise, variant_table
from dnsrig.report import comparison, conditions, draw, terminal_table, wording, write_report
from dnsrig.report.charts import _split
from dnsrig.runs.run import Run
from dnsrig.stats import machines, significance, statistics
from dnsrig.stats.machines import compare, levelled, ratio_interval
from dnsrig.stats.statistics import Strata, rank_test, stratified_rank_test
from dnsrig.traps import all_traps

BIND, KNOT = "bind@system", "knot@system"
small = st.lists(st.integers(0, 6), min_size=1, max_size=3)
strata_of_few = st.lists(st.tuples(small, small), min_size=2, max_size=3).filter(
    lambda strata: min(sum(map(len, side)) for side in zip(*strata, strict=True)) >= 5
)
positive = st.lists(st.floats(0.1, 10), min_size=3, max_size=5)
strata_of_times = st.lists(st.tuples(positive, positive), min_size=2, max_size=3)


def brute_force(strata: Strata) -> float:
    """All ways to split each stratum, by the definition and nothing else."""
    splits = []
    for a, b in strata:
        both = [*a, *b]
        ranks = [sum(y < x for y in both) + Fraction(sum(y == x for y in both) + 1, 2) for x in both]
        weighted = [(rank - Fraction(len(both) + 1, 2)) / (len(both) + 1) for rank in ranks]
        splits.append([sum(chosen) for chosen in itertools.combinations(weighted, len(a))])
        splits[-1].insert(0, sum(weighted[: len(a)]))
    seen = abs(sum(sums[0] for sums in splits))
    ways = [sum(sums) for sums in itertools.product(*(sums[1:] for sums in splits))]
    return sum(abs(way) >= seen for way in ways) / len(ways)


@settings(max_examples=50, deadline=None)
@given(strata_of_few)
def test_the_stratified_test_agrees_with_brute_force_ties_and_unequal_strata_included(strata: Strata) -> None:
    assert stratified_rank_test(strata) == pytest.approx(brute_force(strata))


@given(positive.filter(lambda v: len(v) == 5), st.lists(st.floats(0.1, 10), min_size=5, max_size=8))
def test_one_stratum_is_the_plain_test(a: list[float], b: list[float]) -> None:
    assert stratified_rank_test([(a, b)]) == rank_test(a, b)
    assert stratified_rank_test([(a, b), ([1.0, 2.0], [])]) == rank_test(a, b), (
        "of one side there is nothing to compare"
    )
    assert compare([(a, b)], "lower") == statistics.compare(a, b, "lower")
    assert ratio_interval([(a, b)]) == statistics.ratio_interval(a, b)


@given(strata_of_times)
def test_turned_round_p_is_the_same_and_ratios_are_the_inverse(strata: Strata) -> None:
    turned = [(b, a) for a, b in strata]
    assert stratified_rank_test(strata) == stratified_rank_test(turned)
    one, other = compare(strata, "lower"), compare(turned, "lower")
    assert one.percent is not None and other.percent is not None
    assert one.percent == pytest.approx(1e4 / other.percent)
    if one.interval is not None and other.interval is not None:
        assert one.interval.low == pytest.approx(1e4 / other.interval.high)


@given(strata_of_times, st.lists(st.sampled_from([0.25, 0.5, 2.0, 4.0, 1024.0]), min_size=3, max_size=3))
def test_what_differs_between_machines_changes_nothing(strata: Strata, factors: list[float]) -> None:
    moved = [([f * x for x in a], [f * x for x in b]) for (a, b), f in zip(strata, factors, strict=False)]
    assert stratified_rank_test(moved) == stratified_rank_test(strata)
    one, other = compare(moved, "lower"), compare(strata, "lower")
    assert (one.percent, one.interval) == (other.percent, other.interval)


@given(st.lists(positive, min_size=2, max_size=3))
def test_machines_that_differ_and_nothing_else_never_reject(values: list[list[float]]) -> None:
    assert stratified_rank_test([(found, found) for found in values]) == 1.0


@given(strata_of_times)
def test_the_interval_leaves_out_no_difference_only_where_the_test_rejects(strata: Strata) -> None:
    p, interval = stratified_rank_test(strata), ratio_interval(strata)
    if p is None or interval is None:
        return
    percent = compare(strata, "lower").percent
    assert percent is not None and interval.low <= percent / 100 * (1 + 1e-9)
    assert percent / 100 <= interval.high * (1 + 1e-9)
    if p > 0.05:
        assert interval.low <= 1 <= interval.high


@pytest.mark.parametrize("shape", [((3, 3), (3, 3)), ((2, 3), (4, 3), (2, 2)), ((5, 5), (5, 4))])
def test_under_the_null_p_is_as_uniform_as_so_few_values_allow(shape: tuple[tuple[int, int], ...]) -> None:
    noise, sets = random.Random(11), 2_000
    found = []
    for _ in range(sets):
        strata = [
            ([noise.gauss(s, 1) for _ in range(n)], [noise.gauss(s, 1) for _ in range(m)])
            for s, (n, m) in enumerate(shape)
        ]
        found.append(stratified_rank_test(strata) or 0.0)
    for alpha in (0.05, 0.2, 0.5, 0.8):
        share = sum(p <= alpha for p in found) / sets
        assert share <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / sets)
        assert share >= alpha - 0.2


def test_machines_that_differ_are_told_apart_from_variants_that_do() -> None:
    noise = random.Random(2)
    apart: Strata = [
        (
            [10 * speed * 1.1 * noise.uniform(0.98, 1.02) for _ in range(3)],
            [10 * speed * noise.uniform(0.98, 1.02) for _ in range(3)],
        )
        for speed in (1, 2, 4)
    ]
    pooled = rank_test([x for a, _ in apart for x in a], [y for _, b in apart for y in b])
    p = stratified_rank_test(apart)
    assert pooled is not None and pooled > 0.2 and p == 2 / math.comb(6, 3) ** 3
    found = compare(apart, "lower")
    assert found.by_machines and found.percent == pytest.approx(110, abs=2)
    assert found.interval is not None and found.interval.low > 106
    assert (
        found.of_mean is not None and found.of_mean.mean == pytest.approx(110, abs=2) and found.of_mean.half_range < 4
    )


@pytest.mark.parametrize("sizes", [[10, 10, 10], [4, 10, 16], [15, 15]])
@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
def test_many_values_are_tested_by_the_normal_distribution(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], shift: float
) -> None:
    made = random.Random(5)
    strata = [([made.gauss(shift, 1) for _ in range(n)], [made.gauss(0, 1) for _ in range(n)]) for n in sizes]
    times = [([math.exp(x) for x in a], [math.exp(y) for y in b]) for a, b in strata]
    exact, interval = stratified_rank_test(strata), ratio_interval(times)
    monkeypatch.setattr(statistics, "LARGEST_EXACT", 0)
    assert stratified_rank_test(strata) == pytest.approx(exact, rel=0.05, abs=0.003)
    assert interval is not None
    approximate = ratio_interval(times)
    assert approximate is not None
    assert (approximate.low, approximate.high) == pytest.approx((interval.low, interval.high), rel=0.03)


def test_one_repeat_on_each_of_five_machines_has_a_ratio_and_no_interval() -> None:
    found = compare([([1.1 * speed], [1.0 * speed]) for speed in (1, 2, 3, 4, 5)], "lower")
    assert found.percent == pytest.approx(110) and found.interval is None and found.p == 2 / 32


def test_nothing_is_a_percentage_of_zero() -> None:
    assert compare([([1.0] * 5, [0.0] * 5), ([1.0] * 5, [1.0] * 5)], "lower").percent is None
    assert compare([], "lower").percent is None


def test_levelled_values_have_no_machine_in_them() -> None:
    assert levelled([1.0, 10.0, 1.1, 11.0], ["a", "b", "a", "b"]) == pytest.approx(
        [5.286, 5.286, 5.814, 5.814], abs=0.01
    )
    assert levelled([1.0, 2.0], ["", ""]) == [1.0, 2.0]


def test_too_few_repeats_tells_what_was_measured_and_nothing_else() -> None:
    """Not the values from which what differs between machines was taken out."""
    judge = all_traps()["too-few-repeats"].module.judge
    measured, machines = [1.0, 10.0, 1.2, 13.0], ["a", "b", "a", "b"]
    found = judge(measured, levelled(measured, machines), "transfer_time_s", 1, 2)
    assert "from 1 to 13 s" in found.summary and found.evidence["highest_s"] == 13
    measured, machines = [1.0, 10.0, 5.0, 50.0, 1.0, 90.0, 9.0, 10.0], ["a", "b"] * 4
    found = judge(measured, levelled(measured, machines), "transfer_time_s", 0, 2)
    assert found.verdict == "found" and "wide within machines" in found.summary
    assert {*found.evidence} == {"repeats", "half_width_percent"}


def test_the_least_p_counts_within_machines() -> None:
    assert significance.least_p(6, 6, 1, machines=3) == 2 / math.comb(4, 2) ** 3
    assert significance.least_p(5, 6, 1, machines=2) == 2 / (math.comb(6, 3) * math.comb(5, 2))
    assert significance.repeats_needed(20, machines=3) % 3 == 0
    assert "with 6 repeats over 3 machines and 1 comparison the least p is" in significance.reach(6, 6, 1, machines=3)


def spread_out(directory: Path, repeats: int = 6, names: tuple[str, ...] = ("a", "b", "c"), faster: float = 1.0) -> Run:
    """Machines of different speed; Knot takes nine tenths of BIND's time on each."""
    plan = Plan(servers=[BIND, KNOT], zones=[100], repeats=repeats, samples=False, machines=names)
    run, noise = Run.open(build(directory, plan)), random.Random(9)
    for trial in run.trials:
        is_knot = trial.record.spec.variant.parameters["server"] == KNOT
        time_s = 3.0 ** "abcdef".index(trial.machine) * (0.9 if is_knot else 1.0) * faster * noise.uniform(0.99, 1.01)
        known(trial, transfer_time_s=time_s)
    return run


def test_a_round_lies_on_one_machine(tmp_path: Path) -> None:
    run = spread_out(tmp_path / "run")
    assert {t.record.spec.repeat: t.machine for t in run.trials} == {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
    assert run.as_far_as_whole().trials[0].machine == "a"


def test_a_manifest_of_an_earlier_version_has_no_machines(tmp_path: Path) -> None:
    path = build(tmp_path / "run", Plan(samples=False)) / "manifest.json"
    stored = json.loads(path.read_text())
    del stored["machines"]
    path.write_text(json.dumps(stored))
    manifest = Run.open(path.parent).manifest
    assert manifest.machines == [] and manifest.machine_of(1) is None
    assert manifest.measured_under == manifest.conditions


def test_a_run_over_machines_is_compared_within_them(tmp_path: Path) -> None:
    run = spread_out(tmp_path / "run")
    rows = variant_table(run, "transfer_time_s")
    compared = rows[1].comparison
    assert compared is not None and compared.by_machines and compared.change == "better"
    assert compared.percent == pytest.approx(90, abs=1)
    assert wording.relative(run, rows[1]).startswith(("89.", "90."))
    assert wording.of_what(rows) == wording.OF_MACHINES
    notes = " ".join(terminal_table(run).notes)
    assert "of baseline: typical ratio to a repeat of the same machine's baseline; [..]: its 95 % interval" in notes
    assert "with 6 repeats over 3 machines and 1 comparison" in notes
    verdicts = {c.verdict for _, c in all_traps()["too-few-repeats"].module.across(run)}
    assert verdicts == {"clear"}, "what differs between machines is no spread"


def test_rounds_of_a_run_over_machines_are_compared_as_rounds(tmp_path: Path) -> None:
    run = spread_out(tmp_path / "run", repeats=9)
    compared = variant_table(run, "transfer_time_s")[1].comparison
    assert compared is not None and compared.by_rounds and compared.p == 2 / 2**9
    assert compared.of_mean is not None and compared.of_mean.half_range < 3


def test_exports_have_a_column_of_machines_where_there_are_any(tmp_path: Path) -> None:
    rows = summarise(spread_out(tmp_path / "run")).filter(pl.col("metric") == "transfer_time_s")
    assert dict(zip(rows["repeat"], rows["machine"])) == {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
    assert "machine" not in summarise(Run.open(build(tmp_path / "one", Plan(samples=False)))).columns


def test_conditions_show_once_what_is_the_same_on_all_machines(tmp_path: Path) -> None:
    run = spread_out(tmp_path / "run")
    run.manifest.machines[2].conditions["kernel"] = {"release": "6.2.0"}
    differing = conditions.differing(conditions.by_machine(run.manifest))
    assert {name: facts["kernel.release"] for name, facts in differing.items()} == {
        "a": "6.1.0-synthetic",
        "b": "6.1.0-synthetic",
        "c": "6.2.0",
    }
    alike = conditions.alike(conditions.by_machine(run.manifest))
    assert alike["cpu.model"] == "Synthetic CPU" and "boot_id" not in alike
    one = Run.open(build(tmp_path / "one", Plan(samples=False))).manifest
    assert (
        conditions.alike(conditions.by_machine(one)) == conditions.flatten(one.conditions)
        and conditions.differing(conditions.by_machine(one)) == {}
    )


@pytest.mark.full
def test_the_page_names_machines(tmp_path: Path) -> None:
    page = write_report(spread_out(tmp_path / "run").directory).path.read_text()
    assert "<h3>Machines</h3>" in page and "ran on one of a, b, c" in page and "van Elteren" in page
    one = write_report(build(tmp_path / "one", Plan(samples=False))).path.read_text()
    assert "<h3>Machine</h3>" in one and "<h3>Machines</h3>" not in one and "van Elteren" not in one


def test_of_several_machines_a_trap_names_the_one_it_is_about(tmp_path: Path) -> None:
    run = spread_out(tmp_path / "run")
    look = all_traps()["unsynchronised-clock"].examine
    assert [finding.verdict for finding in look(run)] == ["clear"]
    run.manifest.machines[1].conditions["clock_synchronised"] = False
    ((finding),) = look(run)
    assert finding.verdict == "cannot-tell" and finding.summary.startswith("Machine b: ")


def said(base: Run, new: Run) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(comparison.as_text(compare_runs(base, new, [], [])))
    return capture.get()


def test_two_runs_are_compared_within_the_machines_that_they_share(tmp_path: Path) -> None:
    base = spread_out(tmp_path / "base", names=("a", "b", "c"))
    new = spread_out(tmp_path / "new", names=("a", "b", "d"), faster=0.8)
    rule = thresholds.parse("transfer_time > 105 %")
    found = compare_runs(base, new, [], [rule])
    assert found.machines == ["a", "b"]
    assert {(len(line.base.samples), len(line.new.samples)) for line in found.lines} == {(4, 4)}
    assert [(d.what, d.asked_for) for d in found.differences] == [("machines", True)]
    assert {v.judgement.decision for v in found.verdicts} == {"undecided"}, "four repeats decide nothing"
    assert "machines: a, b; each repeat is compared with the repeats of the base on the same machine" in said(base, new)


def test_rules_judge_within_machines(tmp_path: Path) -> None:
    base = spread_out(tmp_path / "base", repeats=9)
    new = spread_out(tmp_path / "new", repeats=9, faster=1.2)
    texts = {"transfer_time > 110 %": "regression", "transfer_time > 130 %": "pass"}
    for text, decision in texts.items():
        verdicts = compare_runs(base, new, [], [thresholds.parse(text)]).verdicts
        assert {v.judgement.decision for v in verdicts} == {decision}, text
    written = comparison.as_json(compare_runs(base, new, [], []))
    assert written["base"]["machines"] == ["a", "b", "c"]
    assert written["comparisons"][0]["base"]["machines"] == ["a", "b", "c"] * 3


def test_runs_without_a_machine_in_common_are_compared_as_they_are_and_it_is_said(tmp_path: Path) -> None:
    base, new = spread_out(tmp_path / "base"), spread_out(tmp_path / "new", names=("d", "e", "f"))
    found = compare_runs(base, new, [], [])
    assert found.machines == [] and [(d.what, d.asked_for) for d in found.differences] == [("machines", False)]
    assert {len(line.new.samples) for line in found.lines} == {6}
    assert "machines: the runs have no machine in common, so the machines may be the cause of a difference" in said(
        base, new
    )


def test_a_machine_that_became_another_is_not_shared(tmp_path: Path) -> None:
    base, new = spread_out(tmp_path / "base"), spread_out(tmp_path / "new")
    new.manifest.machines[0].conditions["cpus"] = 4
    found = compare_runs(base, new, [], [])
    assert found.machines == ["b", "c"]
    assert [(d.what, d.asked_for) for d in found.differences] == [("machine.a.cpus", True)]


def test_without_machines_there_is_one_stratum() -> None:
    assert machines.strata([1.0], [2.0], (), ()) == [([1.0], [2.0])]
    assert machines.strata([1.0, 2.0], [3.0], ["a", "b"], ["b"]) == [([2.0], [3.0])]


def test_the_marks_of_repeats_have_the_shape_of_their_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charts, chosen = ("time-by-variant", "repeats", "time-per-zone"), draw.chosen
    monkeypatch.setattr(draw, "chosen", lambda run: [chart for chart in chosen(run) if chart.id in charts])

    def drawn(run: Run) -> dict[str, str]:
        return {rendered.chart.id: rendered.svg + rendered.caption for rendered in draw.draw_all(run, [])}

    of_several = drawn(Run.open(build(tmp_path / "run", Plan(repeats=6, machines=("lab-1", "lab-2", "lab-3")))))
    for chart in charts:
        assert all(f">{name}<" in of_several[chart] for name in ("lab-1", "lab-2", "lab-3")), chart
        assert "shape of a filled mark is the machine" in of_several[chart]
    for number, names in enumerate(((), ("lab-1",))):
        of_one = drawn(Run.open(build(tmp_path / str(number), Plan(repeats=6, machines=names))))
        assert not any("lab-1" in text or "filled mark" in text for text in of_one.values())


def test_more_machines_than_shapes_begin_anew(tmp_path: Path) -> None:
    run = Run.open(build(tmp_path / "run", Plan(samples=False, repeats=10, machines=tuple("abcdefghij"))))
    shapes = _split.machine_shapes(run)
    assert len(shapes) == 10 and shapes[8:] == shapes[:2] and len(set(shapes)) == 8


def test_a_run_over_machines_has_none_in_common_with_a_run_on_one(tmp_path: Path) -> None:
    sentence = "machines: the runs have no machine in common, so the machines may be the cause of a difference"
    over_machines, on_one = spread_out(tmp_path / "base"), spread_out(tmp_path / "new", names=())
    assert sentence in said(over_machines, on_one) and sentence in said(on_one, over_machines)
    assert "machines:" not in said(on_one, on_one)


def test_the_words_of_a_run_over_machines_are_as_they_were(tmp_path: Path) -> None:
    assert words_as_they_were("drawn/machines", spread_out(tmp_path / "run", repeats=9))


def test_the_charts_of_a_run_over_machines_are_as_they_were(tmp_path: Path) -> None:
    assert as_it_was("drawn/machines", spread_out(tmp_path / "run"), "time-by-variant", "repeats")
