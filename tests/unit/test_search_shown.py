"""What people see of a search beside its answer: its course, and each commit beside both ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_data import measured
from simulated_history import History, Machine, real_noise, searched

from dnsrig.comparison.bisection import record
from dnsrig.comparison.bisection.course import Ratio, course, ratio
from dnsrig.comparison.bisection.record import Candidate, Search
from dnsrig.comparison.bisection.state import GOOD, Round, State
from dnsrig.comparison.criterion import parse
from dnsrig.comparison.pairs import pairs
from dnsrig.rundir import write_json
from dnsrig.runs.run import Run

NOISE = real_noise()["latency, 99 %"]


def test_the_course_ends_at_the_answer() -> None:
    for number in range(4):
        answer, state = searched(Machine(History(500, 120 * number + 7, 2.0), NOISE, number, drift=0.01))
        steps = list(course(state))
        assert len(steps) == len(state.rounds)
        assert (steps[-1].first, steps[-1].last) == (answer.first, answer.last)
        assert steps[-1].wrong == pytest.approx(answer.wrong)
        assert all(set(step.measured) == set(r) - {GOOD, state.bad} for step, r in zip(steps, state.rounds))


def test_the_change_can_be_anywhere_until_the_ends_are_told_apart() -> None:
    _, state = searched(Machine(History(500, 300, 2.0)))
    steps = list(course(state))
    known = [step for step in steps if step.wrong is not None]
    assert {(step.first, step.last) for step in steps[:5]} == {(1, 500)} and 0 < len(known) < len(steps)
    assert all(step.first <= 300 <= step.last for step in steps), "without noise no turn is wrong"
    assert steps[-1].first == steps[-1].last == 300


def search(directory: Path, repeats: int) -> Run:
    """Four versions, measured in each round; the third one takes three times as long."""
    factors = {"9.18.9": 1.0, "9.18.10": 1.0, "9.18.11": 3.0, "9.18.12": 3.0}
    run = measured(directory, factors, repeats=repeats)
    names = [str(variant.parameters["server"]) for variant in run.manifest.variants]
    run.manifest.axes.pop("zones")
    for variant in run.manifest.variants:
        variant.parameters.pop("zones")
    write_json(run.directory / "manifest.json", run.manifest)
    wanted = Search(
        candidates=[Candidate(value=name, name=name) for name in names],
        path="hosts.secondary.server",
        document={},
        criterion=parse("transfer_time_s > 150 %"),
        seed=1,
    )
    write_json(record.path(run.directory), wanted)
    return Run.open(run.directory)


def test_what_the_change_lies_between_is_set_beside_each_other(tmp_path: Path) -> None:
    (pair,) = pairs(search(tmp_path / "found", 8))
    assert pair.label == "bind 9.18.10 → 9.18.11"
    (pair,) = pairs(search(tmp_path / "not-yet", 3))
    assert pair.label == "bind 9.18.9 → 9.18.12", "the ends"


def state(*rounds: Round) -> State:
    return State(commits=2, criterion=parse("p99_ms > 110 %"), rounds=list(rounds))


def test_few_rounds_have_a_range_and_more_an_interval() -> None:
    """The machine becomes slower by a tenth each round, which both show."""
    rounds: list[Round] = [{0: 1.1**n, 1: 2 * 1.1**n * (1 + n / 100), 2: 2 * 1.1**n} for n in range(8)]
    few, many = ratio(state(*rounds[:3]), 1, GOOD), ratio(state(*rounds), 1, GOOD)
    assert few == Ratio(pytest.approx(2.02), pytest.approx(2.0), pytest.approx(2.04), 3, is_interval=False)
    assert many is not None and many.is_interval and 2.0 <= many.low < many.typical < many.high <= 2.14
    assert many.typical == pytest.approx(2.07, abs=0.005)


def test_rounds_without_both_do_not_count() -> None:
    found = ratio(state({0: 1.0, 1: None, 2: 2.0}, {0: 1.0, 1: 3.0, 2: 2.0}, {0: 0.0, 1: 3.0, 2: 2.0}), 1, GOOD)
    assert found is not None and (found.typical, found.rounds) == (3.0, 1)
    assert ratio(state({0: 1.0, 2: 2.0}), 1, GOOD) is None
