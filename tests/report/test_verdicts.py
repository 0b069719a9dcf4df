"""The sentences of the first screen."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pytest
from load_data import LoadPlan
from load_data import build as build_load
from made_up import made_up_findings
from synthetic import Plan, build

from dnsrig.comparison.summary import VariantRow, describe
from dnsrig.report import names
from dnsrig.report import verdicts as verdicts_of
from dnsrig.report.first import in_words
from dnsrig.report.gather import Entry, TrapReport, gather
from dnsrig.report.headlines import headlines, where_of
from dnsrig.report.verdicts import Verdict, verdicts, visible_difference
from dnsrig.rundir import Finding, Outcome, Scalar, Variant
from dnsrig.runs.run import Run
from dnsrig.stats.samples import Samples, compare
from dnsrig.traps import Weight

RATIO = r"\d\.\d+ \[\d\.\d+\.\.\d\.\d+\]"


def run_of(folder: Path, **changed: object) -> Run:
    plan = {"samples": False, "zones": [100], "repeats": 10, **changed}
    return Run.open(build(folder / "run", Plan(**plan)))  # type: ignore[arg-type]


def said(run: Run) -> list[str]:
    return [str(verdict) for verdict in verdicts(run).shown]


def test_a_difference_has_its_interval_and_its_direction(tmp_path: Path) -> None:
    faster, slower = said(run_of(tmp_path, servers=["bind@system", "knot@system", "nsd@system"]))
    assert re.fullmatch(rf"Knot DNS is {RATIO} × faster than BIND 9", faster)
    assert re.fullmatch(rf"NSD is {RATIO} × slower than BIND 9", slower)


def test_other_axes_come_first_and_each_variant_is_named(tmp_path: Path) -> None:
    found = verdicts(run_of(tmp_path, servers=["bind@system", "knot@system", "nsd@system"], zones=[100, 200, 400]))
    assert len(found.shown) == 4 and found.more == 2
    assert {str(verdict).partition(" zones: ")[0] for verdict in found.shown} <= {"100", "200", "400"}
    assert {verdict.subject for verdict in found.shown} == {"Knot DNS", "NSD"}, "no variant is left out for another"


def test_circumstances_are_called_as_in_the_chart(tmp_path: Path) -> None:
    plan = {"extra_axes": {"changes": ["none", "catalog"]}, "baseline": {"changes": "none"}}
    found = said(run_of(tmp_path, servers=["bind@system", "knot@system"], **plan))
    for sentence, server in zip(found, ["BIND 9", "Knot DNS"], strict=True):
        assert sentence.startswith(f"{server} while the catalog changes and at rest")


def test_without_a_difference_it_is_known_what_would_have_been_seen(tmp_path: Path) -> None:
    """Both values of the axis follow the same law."""
    plan = {"servers": ["bind@system"], "extra_axes": {"way": ["a", "b"]}, "baseline": {"way": "a"}, "zones": [1000]}
    (same,) = said(run_of(tmp_path, **plan))
    assert re.fullmatch(
        rf"way b and a cannot be told apart: {RATIO} (of|×) the time of a; "
        r"a difference of [\d.]+ % or more would have been seen",
        same,
    )


def test_an_interval_that_is_wide_because_of_the_instrument_says_so(tmp_path: Path) -> None:
    """Every latency of one is above every latency of the other, but not at the lower ends."""
    servers, late = ["bind@system", "knot@system"], {"bind@system": 300, "knot@system": 300}
    plans = {"late": LoadPlan(servers, repeats=5, late_us=late), "in-time": LoadPlan(servers, repeats=5)}
    (late_one,), (in_time,) = (said(Run.open(build_load(tmp_path / name, plan))) for name, plan in plans.items())
    assert "cannot be told apart" in late_one and "the interval allows for how late the instrument was" in late_one
    assert "told apart" not in in_time and "how late" not in in_time


@pytest.mark.parametrize("sign", [1, -1])
def test_that_difference_is_told(sign: int) -> None:
    ours, theirs = [0.9, 1.0, 1.0, 1.1, 1.3], [0.8, 0.95, 1.0, 1.05, 1.2]
    seen = visible_difference(Samples.exact(ours), Samples.exact(theirs))
    assert seen is not None
    moved = [value * (1 + (seen + 0.01) / 100) ** sign for value in ours]
    found = compare(Samples.exact(moved), Samples.exact(theirs), "lower")
    assert found.interval is not None and not found.interval.low <= 100 <= found.interval.high
    assert found.p == pytest.approx(2 / 252), "all of one are beyond all of the other"


def test_too_few_repeats_are_said_once_and_claim_nothing(tmp_path: Path) -> None:
    found = verdicts(run_of(tmp_path, repeats=2))
    assert "With 2 repeats and 1 comparison chance can explain any difference" in found.note
    assert re.fullmatch(r"Knot DNS was 1\.\d × faster than BIND 9", str(found.shown[0]))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (0.5, "Knot DNS is 2.0 × faster than BIND 9"),
        (2.0, "Knot DNS is 2.0 × slower than BIND 9"),
        (1.0, "Knot DNS needs 1.0 of BIND 9's time"),
    ],
)
def test_equal_times_are_neither_faster_nor_slower(ratio: float, said: str) -> None:
    words = verdicts_of._Words("", "Knot DNS", "BIND 9", "BIND 9's time", True)
    metric = describe("transfer_time_s")
    assert str(verdicts_of._sized(metric, words, verdicts_of.PRESENT, ("", ratio, None), "", "")) == said


def test_a_server_at_its_limit_gives_a_bound(tmp_path: Path) -> None:
    limits: dict[tuple[str, int, int], Outcome] = {("knot@system", 100, repeat): "timeout" for repeat in range(1, 11)}
    (bound,) = said(run_of(tmp_path, outcomes=limits))
    assert re.fullmatch(r"Knot DNS is at least \d+ × slower than BIND 9 \(Knot DNS: 10 timeout\)", bound)


@pytest.mark.parametrize("weight", ["invalidates", "distorts"])
@pytest.mark.parametrize("which", [0, 1, None], ids=["theirs", "ours", "the whole run"])
def test_what_a_finding_invalidates_is_no_claim(tmp_path: Path, which: int | None, weight: Weight) -> None:
    """The ratio of two lower limits says nothing of the servers."""
    build_load(tmp_path / "run", LoadPlan(servers=("bind@system", "knot@system"), repeats=10, ramp=True))
    run = Run.open(tmp_path / "run")
    variant = None if which is None else run.manifest.variants[which].id
    report = TrapReport("odd", "it is odd", "", "", [], [Entry("found", variant, "", "", [])], weight)
    (sentence,) = map(str, in_words(run, [report]).verdicts.shown)
    claims, doubts = rf"Knot DNS reaches {RATIO} × BIND 9's capacity", f"Knot DNS reached {RATIO} × BIND 9's capacity"
    assert re.fullmatch(f"{doubts}, but a finding invalidates this" if weight == "invalidates" else claims, sentence)


def test_no_reach_is_stated_of_what_a_finding_invalidates(tmp_path: Path) -> None:
    plan = {"servers": ["bind@system"], "extra_axes": {"way": ["a", "b"]}, "baseline": {"way": "a"}, "zones": [1000]}
    (same,) = map(str, verdicts(run_of(tmp_path, **plan), invalidated={None}).shown)
    assert "cannot be told apart" in same and same.endswith("of a, but a finding invalidates this"), same


def test_more_is_better_of_a_capacity(tmp_path: Path) -> None:
    build_load(tmp_path / "run", LoadPlan(servers=("bind@system", "knot@system"), repeats=10, ramp=True))
    (sentence,) = said(Run.open(tmp_path / "run"))
    assert re.fullmatch(rf"Knot DNS reaches {RATIO} × BIND 9's capacity", sentence)


def test_a_run_without_a_baseline_lists_its_servers(tmp_path: Path) -> None:
    found = verdicts(run_of(tmp_path, baseline={}))
    assert found.note.endswith("best first; there is no baseline.")
    assert re.fullmatch(r"Knot DNS [\d.]+ s \[.*\], BIND 9 [\d.]+ s \[.*\]", str(found.shown[0]))


def test_the_heaviest_finding_comes_first(tmp_path: Path) -> None:
    run = run_of(tmp_path, zones=[50, 100], outcomes={("bind@system", 50, 1): "invalid"})
    bad = Finding(trap="generator-bottleneck", verdict="found", variant=run.manifest.variants[0].id, summary="x")
    lines = headlines(run, gather(run, [*made_up_findings(run), bad]))
    assert [line.weight for line in lines] == ["invalidates", "invalidates", "explains"]
    assert str(lines[0]) == "1 of 40 trials is invalid: BIND 9, 50 zones (the probe missed its schedule by 1.2 s)"
    assert str(lines[2]) == "All ephemeral ports are taken by TIME_WAIT: BIND 9, 100 zones"


@pytest.mark.parametrize(
    ("ratio", "ends", "text"),
    [
        (48.7, None, "49"),
        (1234.0, None, "1,234"),
        (10.0, None, "10"),
        (9.96, None, "10.0"),
        (2.0, (1.5, math.inf), "2.0 [1.5..∞]"),
        (1.004, None, "1.004"),
        (1.00001, None, "1.0000"),
        (1.0, None, "1.0"),
        (0.5, (0.25, 0.75), "0.50 [0.25..0.75]"),
    ],
)
def test_a_ratio_has_as_many_digits_as_set_it_apart(ratio: float, ends: tuple[float, float] | None, text: str) -> None:
    assert verdicts_of._ratio(ratio, ends) == text


@pytest.mark.parametrize(
    ("ratio", "said"), [(0.61, ("0.61", " of")), (1.0, ("1.0", " of")), (1.5, ("1.5 ×", "")), (12.0, ("12 ×", ""))]
)
def test_a_ratio_above_one_is_a_multiple(ratio: float, said: tuple[str, str]) -> None:
    assert verdicts_of._part(ratio) == said


@pytest.mark.parametrize(
    ("ends", "inverse"),
    [
        (None, None),
        ((2.0, 4.0), (0.25, 0.5)),
        ((0.5, 0.8), (1.25, 2.0)),
        ((0.5, math.inf), (0.0, 2.0)),
        ((0.0, 4.0), (0.25, math.inf)),
    ],
)
def test_an_interval_turned_round(ends: tuple[float, float] | None, inverse: tuple[float, float] | None) -> None:
    assert verdicts_of._inverse(ends) == inverse


SERVERS = verdicts_of._Words("", "Knot DNS", "BIND 9", "BIND 9's time", True)
CARRIERS = verdicts_of._Words("", "carrier replica", "axfr", "the time of axfr", False)
IN_CONTEXT = verdicts_of._Words("100 zones: ", "carrier replica", "axfr", "the zones of axfr", False)


@pytest.mark.parametrize(
    ("words", "metric", "size", "said"),
    [
        (SERVERS, "transfer_time_s", ("≥", 2.0, None), "Knot DNS is at least 2.0 × slower than BIND 9"),
        (SERVERS, "transfer_time_s", ("≤", 2.0, None), "Knot DNS is at most 2.0 × slower than BIND 9"),
        (SERVERS, "transfer_time_s", ("≤", 0.5, None), "Knot DNS is at least 2.0 × faster than BIND 9"),
        (SERVERS, "transfer_time_s", ("≥", 0.5, None), "Knot DNS is at most 2.0 × faster than BIND 9"),
        (SERVERS, "transfer_time_s", ("", 1.5, (1.25, 2.0)), "Knot DNS is 1.5 [1.2..2.0] × slower than BIND 9"),
        (SERVERS, "transfer_time_s", ("", 0.8, (0.5, 1.0)), "Knot DNS is 1.2 [1.0..2.0] × faster than BIND 9"),
        (SERVERS, "transfer_time_s", ("", 0.0, None), "Knot DNS needs 0.00 of BIND 9's time"),
        (CARRIERS, "transfer_time_s", ("≤", 0.5, None), "Carrier replica needs at most 0.50 of the time of axfr"),
        (CARRIERS, "transfer_time_s", ("", 1.5, None), "Carrier replica needs 1.5 × the time of axfr"),
        (IN_CONTEXT, "zones_per_s", ("", 0.5, None), "100 zones: carrier replica reaches 0.50 of the zones of axfr"),
        (IN_CONTEXT, "p99_ms", ("", 2.0, None), "100 zones: carrier replica has 2.0 × the zones of axfr"),
    ],
)
def test_the_size_of_a_difference_in_words(
    words: verdicts_of._Words, metric: str, size: tuple[str, float, tuple[float, float] | None], said: str
) -> None:
    assert str(verdicts_of._sized(describe(metric), words, verdicts_of.PRESENT, size, "", "")) == said


def row_of(*values: float) -> VariantRow:
    variant, samples = Variant(id="a", parameters={}), Samples.exact(values)
    return VariantRow(variant, describe("transfer_time_s"), Counter({"done": len(values)}), samples, False, None)


@pytest.mark.parametrize(
    ("ours", "seen"),
    [
        ([1.0], "0 %"),
        ([1.0, 1.0, 1.25], "25 %"),
        ([1.0, 1.0, 2.0], "100 %"),
        ([1.0, 1.0, 2.5], "2.5 ×"),
        ([1.0, 1.0, 10.0], "10 ×"),
        ([1.0, 1.0, 10.1], ""),
        ([0.0, 1.0, 1.0], ""),
    ],
)
def test_what_would_have_been_seen_is_stated_up_to_ten_times(ours: list[float], seen: str) -> None:
    reach = f"; a difference of {seen} or more would have been seen" if seen else ""
    assert verdicts_of._reach(row_of(*ours), row_of(1.0)) == reach


@pytest.mark.parametrize(
    ("most", "chosen"), [(1, [1]), (2, [1, 2]), (3, [0, 1, 2]), (4, [0, 1, 2, 3]), (9, [0, 1, 2, 3])]
)
def test_the_largest_difference_of_each_subject_comes_first(most: int, chosen: list[int]) -> None:
    told = [
        Verdict("", subject="Knot DNS", effect=1.0),
        Verdict("", subject="Knot DNS", effect=3.0),
        Verdict("", subject="NSD", effect=2.0),
        Verdict("", subject="NSD"),
    ]
    assert verdicts_of._chosen(told, most) == chosen


def test_what_else_varies_is_the_context_of_what_is_compared(tmp_path: Path) -> None:
    axes = {"case": ["one-large-zone", "tiny-zones"], "carrier": ["axfr", "replica"]}
    found = said(run_of(tmp_path, servers=["knot@system"], extra_axes=axes, baseline={"carrier": "axfr"}))
    assert [sentence[: sentence.index("axfr") + 4] for sentence in found] == [
        "one-large-zone: carrier replica and axfr",
        "tiny-zones: carrier replica and axfr",
    ]


@pytest.mark.parametrize(
    ("metric", "noun"), [("transfer_time_s", "time"), ("p99_ms", "p99 latency"), ("capacity_qps", "capacity")]
)
def test_a_metric_is_called_by_what_it_measures(metric: str, noun: str) -> None:
    assert verdicts_of._noun(describe(metric)) == noun


@pytest.mark.parametrize(
    ("servers", "zones", "chosen", "where"),
    [
        (["bind@system"], [50], [0], ""),
        (["bind@system", "knot@system"], [50], [1], "Knot DNS"),
        (["bind@system", "knot@system"], [50], [0, 1], "both variants"),
        (["bind@system", "knot@system"], [50, 100], [0, 3], "BIND 9, 50 zones; Knot DNS, 100 zones"),
        (["bind@system", "knot@system"], [50, 100], [0, 1, 3], "3 of 4 variants"),
        (["bind@system", "knot@system"], [50, 100], [0, 1, 2, 3], "all 4 variants"),
    ],
)
def test_a_line_names_up_to_two_variants(
    tmp_path: Path, servers: list[str], zones: list[int], chosen: list[int], where: str
) -> None:
    run = run_of(tmp_path, servers=servers, zones=zones, repeats=1)
    assert where_of(run, [run.manifest.variants[index].id for index in chosen]) == where


@pytest.mark.parametrize(
    ("reasons", "why"), [(["x" * 60], "x" * 60), (["x" * 61], ""), (["a", "a"], "a"), (["a", "b"], "")]
)
def test_a_line_has_the_reason_if_it_is_short_and_the_only_one(tmp_path: Path, reasons: list[str], why: str) -> None:
    run = run_of(tmp_path, servers=["bind@system"], repeats=3)
    for trial, reason in zip(run.trials, reasons, strict=False):
        trial.record.outcome, trial.record.reason = "invalid", reason
    (line,) = headlines(run, [])
    number, verb = (len(reasons), "is" if len(reasons) == 1 else "are")
    assert (line.what, line.why) == (f"{number} of 3 trials {verb} invalid", why)


@pytest.mark.parametrize(
    ("axis", "values", "called", "short"),
    [
        ("loss_percent", [1, 5], "loss 1 %", "loss 1 %"),
        ("tls", [True, False], "tls", "tls"),
        ("tls", [False, True], "no tls", "no tls"),
        ("mode", ["fast", "slow-start"], "mode fast", "fast"),
        ("mode", ["fast", "all"], "mode fast", "mode fast"),
        ("mode", ["fast", "90 %"], "mode fast", "mode fast"),
        ("threads", [2000, 4000], "2,000 threads", "2,000 threads"),
        ("threads", ["a1", "b2"], "threads a1", "threads a1"),
        ("worker_threads", [8, 16], "worker threads 8", "worker threads 8"),
        ("server", ["knot@system", "bind@system"], "Knot DNS", "Knot DNS"),
        ("server", ["bind@9.18.1", "bind@9.18.2"], "BIND 9 9.18.1", "BIND 9 9.18.1"),
        ("server", ["bind@/a", "bind@/b"], "bind@/a", "bind@/a"),
    ],
)
def test_a_variant_is_called_by_its_values(
    tmp_path: Path, axis: str, values: list[Scalar], called: str, short: str
) -> None:
    others: dict[str, object] = {"extra_axes": {axis: values}, "servers": ["nsd@system"]}
    axes_of: dict[str, object] = {"servers": values} if axis == "server" else others
    run = run_of(tmp_path, repeats=0, baseline={}, **axes_of)
    variant, axes = run.manifest.variants[0], names.varying_axes(run)
    assert axes == [axis]
    assert (names.name(run, variant, axes), names.name(run, variant, axes, short=True)) == (called, short)
    assert names.circumstances(run, variant, axes) == f"with {called}"


@pytest.mark.parametrize(
    ("axis", "value", "said"),
    [("changes", "none", "at rest"), ("storage", "disk", "on disk"), ("cache", "warm", "with warm cache")],
)
def test_circumstances_follow_the_name_of_a_server(tmp_path: Path, axis: str, value: str, said: str) -> None:
    run = run_of(tmp_path, repeats=0, baseline={}, extra_axes={axis: [value, "other"]})
    assert names.circumstances(run, run.manifest.variants[0], [axis, "unknown"]) == said
