"""Differential flame graphs of two versions, whole and within stalls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import load_data
import pytest
from drawn import as_it_was
from html_facts import read
from pair_data import NEW, OLD, measured
from test_stalls_chart import OTHERWISE, STALLED, still

from dnsrig.comparison.pairs import IN_STALLS, Profiles, pairs, profiles
from dnsrig.comparison.pairs import OTHERWISE as ELSEWHERE
from dnsrig.report import svg
from dnsrig.report.charts import Drawing, _differences, _flames, _look, flame_difference
from dnsrig.runs.run import Run

BEFORE = {"main;recv": 40, "main;answer": 40, "main;lock;futex": 20}
AFTER = {"main;recv": 41, "main;answer": 39, "main;compress": 20}


def profiled(directory: Path, before: dict[str, int] = BEFORE, after: dict[str, int] = AFTER) -> Run:
    run = measured(directory)
    for trial in run.trials:
        stacks = after if trial.record.spec.variant.parameters["server"] == NEW else before
        lines = "".join(f"{stack} {count}\n" for stack, count in stacks.items())
        (trial.directory / "profile-secondary.folded").write_text(lines)
    return Run.open(directory)


def data_of(drawing: Drawing) -> Iterable[list[dict[str, Any]]]:
    """Of each part of it; a look is a number in its own part."""
    datasets: dict[str, list[dict[str, Any]]] = drawing.chart.to_dict()["datasets"]
    return datasets.values()


def test_shares_are_of_each_versions_own_samples(tmp_path: Path) -> None:
    """The newer version has ten times as many samples: that is no difference of what ran."""
    run = profiled(tmp_path / "run", after={stack: 10 * count for stack, count in AFTER.items()})
    (found,) = profiles(run, pairs(run)[0])
    assert (found.base.total(), found.new.total()) == (300, 3000), "of three repeats"
    told = {each.name: (each.share, each.other_share) for each in found.functions}
    assert told == {"compress": (0.2, 0.0), "futex": (0.0, 0.2)}, "a point more of recv is what sampling brings about"


def test_too_few_samples_say_nothing(tmp_path: Path) -> None:
    run = profiled(tmp_path / "run", before={"main;recv": 30})
    assert not list(profiles(run, pairs(run)[0])) and not flame_difference.applies(run)


def test_what_is_new_is_orange_and_what_is_gone_is_blue(tmp_path: Path) -> None:
    run = profiled(tmp_path / "run")
    drawing, before = flame_difference.draw(run)
    assert drawing.title.startswith("bind 9.18.9 → 9.18.10. ")
    after, gone = (read(svg.render(each.chart)) for each in (drawing, before))
    assert "compress" in after.text and "futex" in gone.text, "each in the graph of its version"
    used = {value for _, name, value in (*after.attributes, *gone.attributes) if name in ("fill", "stroke")}
    assert {_differences.MORE, _differences.LESS} <= used
    assert used <= {*_look.NEUTRALS.values(), *_look.COLOURS, "none", "transparent"}
    graphs = ({row["label"]: row["look"] for row in rows if "label" in row} for rows in data_of(drawing))
    (looks,) = (graph for graph in graphs if "compress" in graph)
    assert looks["recv"] == looks["answer"] != looks["compress"]


def test_equal_profiles_are_grey(tmp_path: Path) -> None:
    run = profiled(tmp_path / "run", after=BEFORE)
    drawing, _ = flame_difference.draw(run)
    assert "no function's own share differs" in drawing.title
    used = {value for _, name, value in read(svg.render(drawing.chart)).attributes if name == "fill"}
    assert not {_differences.MORE, _differences.LESS} & used


def test_chance_is_told_from_a_difference() -> None:
    few, many = ({stack: times * count for stack, count in AFTER.items()} for times in (1, 100))
    slightly = {"main;recv": 44, "main;answer": 36, "main;compress": 20}
    assert Profiles(Counter(few), Counter(slightly)).functions == []
    found = Profiles(Counter(many), Counter({stack: 100 * count for stack, count in slightly.items()})).functions
    assert {each.name for each in found} == {"recv", "answer"}


@pytest.fixture
def stalling(tmp_path: Path) -> Run:
    """Both versions stand still for a second in each repeat."""
    law = dict.fromkeys((OLD, NEW), 100.0)
    plan = load_data.LoadPlan(servers=[OLD, NEW], repeats=2, median_us=law)
    run = Run.open(load_data.build(tmp_path / "run", plan))
    for trial in run.trials:
        stalled = STALLED if trial.record.spec.variant.parameters["server"] == NEW else OTHERWISE
        still(trial, stalled)
        counts = Counter(stalled) + Counter(OTHERWISE)
        lines = "".join(f"{stack} {counts[stack]}\n" for stack in sorted(counts))
        (trial.directory / "profile-secondary.folded").write_text(lines)
    return Run.open(run.directory)


def test_stalls_are_held_against_the_other_versions_stalls(stalling: Run) -> None:
    whole, found = profiles(stalling, pairs(stalling)[0])
    assert (found.base_part, found.new_part) == (IN_STALLS, IN_STALLS)
    assert found.new == Counter(STALLED) + Counter(STALLED) and whole.new.total() > found.new.total()
    assert [each.name for each in found.functions][:2] == ["recv", "isc_ht_find"]
    drawings = flame_difference.draw(stalling)
    assert [drawing.group for drawing in drawings] == ["", "", *["bind 9.18.9 → 9.18.10, in stalls"] * 2]


def test_or_against_all_of_a_version_that_has_none(stalling: Run) -> None:
    for trial in stalling.trials:
        if trial.record.spec.variant.parameters["server"] == OLD:
            (trial.directory / "answers.arrow").unlink()
    run = Run.open(stalling.directory)
    _, found = profiles(run, pairs(run)[0])
    assert (found.base_part, found.new_part) == (ELSEWHERE, IN_STALLS)


def test_the_charts_are_as_they_were(stalling: Run, tmp_path: Path) -> None:
    assert as_it_was("drawn/flame-difference", profiled(tmp_path / "other"), "flame-difference")
    assert as_it_was("drawn/flame-difference-in-stalls", stalling, "flame-difference")


@pytest.mark.parametrize(
    ("more", "opacity"),
    [(1.9, None), (2.0, 0.2), (9.9, 0.2), (10.0, 0.45), (29.9, 0.45), (30.0, 0.75), (100.0, 0.75)],
)
def test_a_larger_difference_has_a_stronger_shade(more: float, opacity: float | None) -> None:
    wider, narrower = _differences.look(more), _differences.look(-more)
    if opacity is None:
        assert wider == narrower == _flames.PLAIN
    else:
        assert wider == _flames.Look(_differences.MORE, opacity)
        assert narrower == _flames.Look(_differences.LESS, opacity)
    assert _differences.look(more, named=True).edge == _look.INK
