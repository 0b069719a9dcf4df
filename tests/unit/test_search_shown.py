"""What people see of a search beside its answer: its course, and each commit beside both ends."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pytest
from drawn import as_it_was, pictures_as_they_were, words_as_they_were
from history_data import measured
from simulated_history import History, Machine, real_noise, searched

from dnsrig.comparison.bisection import record
from dnsrig.comparison.bisection.course import Ratio, Step, course, ratio
from dnsrig.comparison.bisection.difference import Difference
from dnsrig.comparison.bisection.record import Candidate, Search
from dnsrig.comparison.bisection.search import Answer, Kind
from dnsrig.comparison.bisection.state import GOOD, Round, State
from dnsrig.comparison.criterion import parse
from dnsrig.comparison.pairs import pairs
from dnsrig.report import bisection
from dnsrig.report.charts import _look, search_by_round
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


CRITERION = parse("transfer_time_s > 110 %")


def wanted(commits: int) -> Search:
    candidates = [Candidate(value=n, name=f"c{n}", subject=f"change {n}") for n in range(commits + 1)]
    return Search(candidates=candidates, path="options.x", document={}, criterion=CRITERION, seed=1)


def answer(kind: Kind, first: int, last: int, wrong: float = 0.02) -> Answer:
    return Answer(kind, first, last, wrong, "the reason", Difference("differ", 6), {})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (0.0214, "with 2.1 % it is another one"),
        (1e-4, "with 0.01 % it is another one"),
        (0.99e-4, "another one is all but ruled out"),
        (0.0, "another one is all but ruled out"),
    ],
)
def test_an_answer_states_how_probably_it_is_wrong(wrong: float, said: str) -> None:
    told = bisection.sentences(wanted(9), answer("commit", 3, 3, wrong))
    assert told == ["c3  change 3", f"the first that is like the bad end; {said}"]
    told = bisection.sentences(wanted(9), answer("range", 3, 5, wrong))
    assert told[0] == f"one of 3 candidates; {said}: the reason"
    assert told[1:] == ["       3  c3  change 3", "       4  c4  change 4", "       5  c5  change 5"]


def test_without_an_answer_the_reason_is_stated() -> None:
    assert bisection.sentences(wanted(9), answer("no-difference", 1, 9)) == [
        "no difference: the reason (after 6 rounds of both ends)"
    ]
    assert bisection.sentences(wanted(9), answer("undecided", 1, 9)) == ["undecided: the reason"]


@pytest.mark.parametrize(
    ("commits", "shown"),
    [
        (12, [*range(12)]),
        (13, [*range(6), "… 1 more", *range(7, 13)]),
        (1012, [*range(6), "… 1,000 more", *range(1006, 1012)]),
    ],
)
def test_of_a_long_list_both_ends_are_shown(commits: int, shown: list[int | str]) -> None:
    lines = bisection.listing(wanted(commits).candidates[:commits])
    assert lines == [f"  {at}" if isinstance(at, str) else f"  {at:>6}  c{at}  change {at}" for at in shown]


@pytest.mark.parametrize(("value", "text"), [(0.0454, "4.5 %"), (1e-4, "0.01 %"), (0.99e-4, "< 0.01 %"), (0.5, "50 %")])
def test_a_probability_that_is_very_small_is_only_said_to_be_so(value: float, text: str) -> None:
    assert bisection._probability(value) == text


@pytest.mark.parametrize(("log_ratio", "least"), [(0.0, 0.5), (1.0986122886681098, 0.25), (-1.0986122886681098, 0.25)])
def test_the_smaller_of_two_probabilities(log_ratio: float, least: float) -> None:
    """The logarithm of 3: one is three times as probable as the other."""
    assert bisection._least(log_ratio) == pytest.approx(least)


def test_a_commit_is_compared_with_an_end_by_the_rounds_that_both_are_in() -> None:
    rounds: list[Round] = [{0: 1.0, 1: 2.0, 3: 4.0}, {0: 1.0, 3: "unfinished"}, {0: 1.5, 1: 4.5, 3: None}]
    one = State(commits=3, criterion=CRITERION, rounds=rounds[:1])
    assert [bisection.percent(one, 1, end) for end in (0, 3, 1)] == ["200 %", "50.0 %", ""]
    all_ = State(commits=3, criterion=CRITERION, rounds=rounds)
    assert [bisection.percent(all_, 1, end) for end in (0, 3)] == ["250 % (200..300)", "50.0 %"]
    assert [bisection.median(all_, at) for at in (0, 1, 3)] == ["1", "3.25", "4, 1 unfinished"]
    assert bisection.median(State(commits=3, criterion=CRITERION, rounds=rounds[1:2]), 3) == "none, 1 unfinished"


STEPS = [
    Step(1, {2: "open"}, 1, 4, None),
    Step(2, {2: "good"}, 3, 4, 0.0316),
    Step(3, {3: "bad", 2: "neither"}, 3, 3, 0.004),
]


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        (1, "after 1 round: commits 1 to 4"),
        (2, "after 2 rounds: commits 3 to 4, wrong with 3.2 %"),
        (3, "after 3 rounds: commit 3, wrong with 0.4 %"),
    ],
)
def test_the_title_of_the_chart_states_where_the_search_is(rounds: int, words: str) -> None:
    assert search_by_round.in_words(STEPS[:rounds]) == words


def test_the_chart_is_as_it_was() -> None:
    charts: dict[str, alt.TopLevelMixin] = {
        f"{rounds} rounds": _look.stack([search_by_round._panel(wanted(4), STEPS[:rounds])]) for rounds in (1, 3)
    }
    assert pictures_as_they_were("drawn/search-by-round", charts)


def test_the_report_of_a_search_is_as_it_was(tmp_path: Path) -> None:
    run = search(tmp_path, 8)
    assert as_it_was("drawn/search", run, "search-by-round") and words_as_they_were("drawn/search", run)
