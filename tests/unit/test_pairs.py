"""Which versions of a run are a pair, and what each of them cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pair_data import NEW, OLD, measured

from dnsrig.comparison.pairs import Profiles, _enough, _names, costs_of, is_told, pairs
from dnsrig.rundir import write_json

NEWEST = "bind@9.18.11"


def labels(directory: Path, *servers: str, **baseline: str) -> list[str]:
    run = measured(directory / "run", servers=servers, baseline=dict(baseline))
    return [pair.label for pair in pairs(run)]


def test_each_version_stands_beside_the_one_before_it(tmp_path: Path) -> None:
    assert labels(tmp_path, OLD, NEW, NEWEST) == ["bind 9.18.9 → 9.18.10", "bind 9.18.10 → 9.18.11"]


def test_or_beside_the_baseline(tmp_path: Path) -> None:
    found = labels(tmp_path, OLD, NEW, NEWEST, server=NEW)
    assert found == ["bind 9.18.10 → 9.18.9", "bind 9.18.10 → 9.18.11"]


def test_a_baseline_of_another_kind_is_no_version_of_it(tmp_path: Path) -> None:
    assert labels(tmp_path, "knot@system", OLD, NEW, server="knot@system") == ["bind 9.18.9 → 9.18.10"]


def test_two_builds_of_one_version_have_their_own_names(tmp_path: Path) -> None:
    (label,) = labels(tmp_path, "bind@system", "bind@forky")
    assert label == "bind server=bind@system zones=50 → server=bind@forky zones=50"


def test_variants_that_differ_in_more_are_no_pair(tmp_path: Path) -> None:
    run = measured(tmp_path / "run")
    old = run.manifest.variants[0].id
    run.manifest.specs[old] = run.manifest.specs[old].model_copy(update={"limit_s": 1.0})
    assert pairs(run) == []


def test_the_ratio_is_that_within_rounds(tmp_path: Path) -> None:
    """The machine drifts by a tenth a round; the versions' ratio does not."""
    run = measured(tmp_path / "run")
    (pair,) = pairs(run)
    found = costs_of(run, pair)
    assert found.per == "a trial"
    lines = {line.cost.name: line for line in found.lines}
    assert list(lines) == ["voluntary_switches", "involuntary_switches", "minor_faults", "major_faults"]
    switches = lines["voluntary_switches"]
    assert switches.base and (switches.base.low, switches.base.median, switches.base.high) == (1100, 1200, 1300)
    assert switches.ratio and (switches.ratio.low, switches.ratio.high, switches.ratio.n) == (2, 2, 3)
    assert lines["involuntary_switches"].ratio and lines["involuntary_switches"].ratio.median == 1
    assert lines["major_faults"].ratio is None, "nothing can be divided by none"


def test_where_queries_were_answered_it_is_what_an_answer_costs(tmp_path: Path) -> None:
    run = measured(tmp_path / "run", answered=1_000)
    found = costs_of(run, pairs(run)[0])
    assert found.per == "an answer"
    assert found.lines[0].base and found.lines[0].base.median == pytest.approx(1.2)


def test_only_rounds_with_both_versions_done_have_a_ratio(tmp_path: Path) -> None:
    run = measured(tmp_path / "run")
    (lost,) = (t for t in run.of_variant(run.manifest.variants[0].id) if t.record.spec.repeat == 2)
    lost.record.outcome = "timeout"
    write_json(lost.directory / "trial.json", lost.record)
    switches = costs_of(run, pairs(run)[0]).lines[0]
    assert switches.base and switches.new and switches.ratio
    assert (switches.base.n, switches.new.n, switches.ratio.n) == (2, 3, 2)


def test_the_function_with_the_largest_difference_comes_first() -> None:
    before, after = {"m;a": 300, "m;b": 600, "m;c": 100}, {"m;a": 500, "m;b": 300, "m;c": 200}
    found = Profiles(Counter(before), Counter(after)).functions
    assert [(each.name, each.other_share, each.share) for each in found] == [
        ("b", 0.6, 0.3),
        ("a", 0.3, 0.5),
        ("c", 0.1, 0.2),
    ]


@pytest.mark.parametrize(
    ("share", "other", "samples", "others", "told"),
    [
        # A half of 900 is known to 1/60, and the difference of two to 0.0236: three times that is 0.0707.
        (0.536, 0.464, 900, 900, True),
        (0.535, 0.465, 900, 900, False),
        (0.464, 0.536, 900, 900, True),
        # With a quarter of the samples on one side: 0.0372, and 0.1117.
        (0.5, 0.39, 900, 225, False),
        (0.5, 0.38, 900, 225, True),
        (0.0, 0.0, 900, 900, False),
        (0.0, 1.0, 1, 1, False),
    ],
)
def test_a_difference_of_shares_is_told_beyond_three_standard_errors(
    share: float, other: float, samples: int, others: int, told: bool
) -> None:
    assert is_told(share, other, samples, others) == told


@pytest.mark.parametrize(("base", "new", "compared"), [(99, 100, False), (100, 99, False), (100, 100, True)])
def test_a_hundred_samples_of_each_are_enough(base: int, new: int, compared: bool) -> None:
    profiles = Profiles(Counter({"m": base}), Counter({"m": new}))
    assert _enough(profiles) == ([profiles] if compared else [])


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("max-cache", True),
        ("view.max-cache", True),
        ("zone max-cache", True),
        ("cache", False),
        ("max", False),
        ("x", False),
    ],
)
def test_a_setting_is_named_where_its_whole_name_is(name: str, named: bool) -> None:
    assert _names("options {\n  max-cache 5;\n};", name) == named
