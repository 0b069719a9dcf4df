"""Noisy bisection: right without noise, careful with it, the same after it was killed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_history import CRITERION, History, Machine, git_bisect_run, real_noise, searched

from dnsrig.comparison.bisection.difference import Difference, _at_least, _one_sided, difference
from dnsrig.comparison.bisection.evidence import FreedEnds, _counts, _numbers, edges, evidence, freed
from dnsrig.comparison.bisection.posterior import Cell, cells, credible, log_likelihood, within
from dnsrig.comparison.bisection.search import Answer, Measure, _quantile, _share, next_step
from dnsrig.comparison.bisection.state import GOOD, Limits, Round, State
from dnsrig.comparison.criterion import Criterion, parse
from dnsrig.errors import UsageError

NOISE = real_noise()["latency, 99 %"]
ENDS = 2


@st.composite
def histories(draw: st.DrawFn) -> History:
    commits = draw(st.integers(1, 1500))
    return History(commits, draw(st.integers(1, commits)), draw(st.sampled_from([1.05, 2.0, 100.0])))


@given(histories())
@settings(max_examples=60, deadline=None)
def test_without_noise_it_is_right_within_the_logarithm(history: History) -> None:
    machine = Machine(history)
    answer, _ = searched(machine)
    assert (answer.kind, answer.first, answer.reason) == ("commit", history.culprit, "")
    assert len(machine.measured) <= math.ceil(math.log2(history.commits)) + ENDS
    assert answer.wrong <= 0.02


@given(histories(), st.data())
@settings(max_examples=60, deadline=None)
def test_commits_that_cannot_be_built_never_make_another_one_the_answer(history: History, data: st.DataObject) -> None:
    positions = st.sets(st.integers(1, history.commits), max_size=40)
    start, length = data.draw(st.integers(1, history.commits)), data.draw(st.integers(0, 60))
    broken = frozenset(data.draw(positions) | set(range(start, start + length)))
    machine = Machine(
        History(history.commits, history.culprit, history.effect, broken), seed=data.draw(st.integers(0, 9))
    )
    answer, state = searched(machine)
    assert history.culprit is not None and answer.first <= history.culprit <= answer.last
    if answer.kind == "commit":
        assert not {answer.first - 1, answer.first} & (broken - {GOOD, state.bad})
    else:
        assert "cannot be measured" in answer.reason
    assert not machine.measured & (broken - {GOOD, state.bad})


def test_of_broken_neighbours_few_are_tried() -> None:
    machine = Machine(History(1000, 700, 2.0, frozenset(range(480, 620))))
    answer, state = searched(machine)
    assert (answer.kind, answer.first) == ("commit", 700)
    assert len(state.unmeasurable) <= 4


def test_with_real_noise_and_drift_it_is_right_and_repeats_fewer_than_git() -> None:
    outcomes: Counter[str] = Counter()
    by_git: Counter[bool] = Counter()
    for number in range(12):
        history = History(1000, 83 * number + 1, 1.5)
        answer, _ = searched(Machine(history, NOISE, number, drift=0.01))
        outcomes[answer.kind if answer.first <= (history.culprit or 0) <= answer.last else "false"] += 1
        by_git[git_bisect_run(Machine(history, NOISE, number, drift=0.01), 1) == history.culprit] += 1
    assert outcomes["commit"] >= 11 and not outcomes["false"]
    assert by_git[False] >= 1, "one trial a commit is led astray"


def test_of_a_history_without_a_culprit_no_commit_is_blamed() -> None:
    answers = [searched(Machine(History(1000, None), NOISE, seed, drift=0.02))[0] for seed in range(20)]
    assert {answer.kind for answer in answers} <= {"no-difference", "undecided"}
    assert sum("fulfil" in answer.reason for answer in answers) >= 19, "the ends seem to differ by chance, 1 of 100"


def test_what_shows_in_some_trials_only_is_found() -> None:
    for seed in range(5):
        history = History(300, 40 + 50 * seed, 10.0, shows_in=0.6)
        answer, _ = searched(Machine(history, NOISE, seed))
        assert answer.first <= (history.culprit or 0) <= answer.last


def test_a_drift_larger_than_the_effect_does_not_lead_astray() -> None:
    class Slower(Machine):
        def round(self, commits: object) -> Round:
            self._drifted += 0.01
            return super().round(commits)  # type: ignore[arg-type]

    quiet = [x / 10 for x in NOISE if abs(x) < 0.2]
    machine = Slower(History(256, 200, 1.1), quiet)
    answer, state = searched(machine)
    assert len(state.rounds) > 20 and (answer.kind, answer.first) == ("commit", 200)


def test_a_turn_that_was_wrong_is_taken_back() -> None:
    state = state_of(commits=64, rounds=[{0: 10.0, 64: 20.0}] * 6)
    state.rounds += [{0: 10.0, 32: 20.0, 64: 20.0}] * 2  # by chance: the culprit is 50
    assert evidence(state).commits[32].verdict == "bad"
    machine = Machine(History(64, 50, 2.0))
    while isinstance(step := next_step(state), Measure):
        state.rounds.append(machine.round(step.commits))
    assert isinstance(step, Answer) and (step.kind, step.first) == ("commit", 50)


def test_the_state_is_all_there_is() -> None:
    """Written and read after every round, as after a kill, it goes the same way."""
    answer, state = searched(Machine(History(200, 77, 1.3, frozenset({100, 101})), NOISE, 3, drift=0.01))
    again = State.model_validate_json(state.model_dump_json())
    assert again == state and next_step(again) == answer
    rounds, again.rounds, again.unmeasurable = again.rounds, [], []
    for each in rounds:
        step = next_step(State.model_validate_json(again.model_dump_json()))
        while isinstance(step, Measure) and set(step.commits) & {100, 101}:
            again.unmeasurable += sorted(set(step.commits) & {100, 101})
            step = next_step(again)
        assert isinstance(step, Measure) and set(step.commits) == set(each)
        again.rounds.append(each)


def test_a_commit_like_neither_end_is_stepped_around_and_told() -> None:
    state = state_of(commits=8, rounds=[{0: 10.0, 8: 1000.0}] * 8)
    while isinstance(step := next_step(state), Measure):
        levels = {0: 10.0, 1: 10.0, 2: 10.0, 3: 100.0, 4: 100.0, 5: 100.0}
        state.rounds.append({commit: levels.get(commit, 1000.0) for commit in step.commits})
    assert (step.kind, step.first, step.last) == ("range", 3, 6)
    assert "3 are like neither end" in step.reason


def test_every_search_ends() -> None:
    """Trials that say nothing, ends that are the same, limits that are reached."""
    silent: list[Round] = [{0: 10.0, 9: 20.0}] * 6
    state = state_of(commits=9, rounds=silent, limits=Limits(rounds=60))
    while isinstance(step := next_step(state), Measure):
        state.rounds.append({commit: None if commit not in (0, 9) else 10.0 + commit for commit in step.commits})
    assert step.kind == "undecided" and len(state.rounds) <= 60
    empty = state_of(commits=9, limits=Limits(rounds=60))
    while isinstance(step := next_step(empty), Measure):
        empty.rounds.append(dict.fromkeys(step.commits))
    assert step.kind == "undecided" and len(empty.rounds) == 60


def test_what_did_not_finish_is_worse_than_all_that_did() -> None:
    state = state_of(commits=4)
    while isinstance(step := next_step(state), Measure):
        state.rounds.append({c: "unfinished" if c >= 3 else 10.0 + len(state.rounds) % 3 for c in step.commits})
    assert (step.kind, step.first) == ("commit", 3)


def test_from_nothing_to_something_and_metrics_of_which_more_is_better() -> None:
    for criterion, levels in {
        "p99_ms > 110 %": (0.0, 7.0),
        "qps < 90 %": (1000.0, 700.0),
        "p99_ms > 5 ms": (4, 6),
    }.items():
        state = State(commits=16, criterion=parse(criterion))
        while isinstance(step := next_step(state), Measure):
            state.rounds.append({commit: levels[commit >= 11] for commit in step.commits})
        assert (step.kind, step.first) == ("commit", 11), criterion


def test_ends_that_are_alike_or_the_other_way_round_are_told_so() -> None:
    for bad in (10.0, 5.0):
        state = state_of(commits=4, rounds=[{0: 10.0 + i % 2, 4: bad + i % 2} for i in range(40)])
        step = next_step(state)
        assert isinstance(step, Answer) and step.kind == "no-difference"
        assert difference(state).verdict == "same"


def test_an_absolute_limit_wants_the_ends_on_its_two_sides() -> None:
    both_beyond = State(commits=4, criterion=parse("p99_ms > 5"), rounds=[{0: 10.0, 4: 20.0}] * 40)
    assert difference(both_beyond).verdict == "same"


def test_probabilities_of_commits() -> None:
    ends = (9, 0), (0, 9)
    found = cells(*ends, {49: (1, 0), 50: (0, 1)}, 100)
    assert [(cell.first, cell.last) for cell in found] == [(1, 49), (50, 50), (51, 100)]
    assert math.isclose(sum(cell.probability for cell in found), 1)
    # Before 50, the good one of 49 would be bad: 1/11 beside 10/11, and then the bad one of 50 is like ten others.
    right, before = (10 / 11) * (10 / 11), (1 / 11) * (10 / 12)
    assert math.isclose(found[0].probability / found[1].probability, 49 * before / right)
    assert credible(found, 0.5).size > 1
    sure = cells(*ends, {49: (9, 0), 50: (0, 9)}, 100)
    assert credible(sure, 0.05).first == 50 and within(sure, 1, 100) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "metric", "expected"),
    [
        ("p99 > 110 %", "p99_ms", Criterion(metric="p99_ms", above=True, limit=110, unit="%")),
        ("p99 > 5 ms", "p99_ms", Criterion(metric="p99_ms", above=True, limit=5, unit="ms")),
        ("p99>0.005s", "p99_ms", Criterion(metric="p99_ms", above=True, limit=5, unit="ms")),
        (
            "transfer_time < 500ms",
            "transfer_time_s",
            Criterion(metric="transfer_time_s", above=False, limit=0.5, unit="s"),
        ),
        ("unanswered > 3", "unanswered_percent", Criterion(metric="unanswered_percent", above=True, limit=3)),
    ],
)
def test_criteria_are_read(text: str, metric: str, expected: Criterion) -> None:
    assert parse(text).of(metric) == expected


@pytest.mark.parametrize("text", ["p99", "p99 > ", "p99 = 3", "> 5 ms", "p99 > 0 %", "p99 > -5", "p99 > 5 ms ms"])
def test_what_is_no_criterion_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no criterion|above zero"):
        parse(text)


def test_a_unit_of_another_kind_is_refused() -> None:
    for text, metric in (("p99 > 5 qps", "p99_ms"), ("p99 > 1e9", "p99_ms"), ("rate > 5 ms", "rate_per_s")):
        with pytest.raises(UsageError, match="no unit"):
            parse(text).of(metric)


def state_of(commits: int, rounds: list[Round] | None = None, limits: Limits | None = None) -> State:
    return State(
        commits=commits,
        criterion=parse(CRITERION),
        rounds=list(rounds or []),
        limits=limits or Limits.model_validate({}),
    )


LOW_BAD: Round = {0: 10.0, 4: 20.0}


def looked_at(criterion: str, rounds: list[Round]) -> Difference:
    return difference(State(commits=4, criterion=parse(criterion), rounds=rounds))


@pytest.mark.parametrize(
    ("criterion", "rounds", "expected"),
    [
        (CRITERION, [LOW_BAD] * 5, Difference("open", 5)),
        # Of the 924 ways to choose six of twelve one separates them as much.
        (CRITERION, [LOW_BAD] * 6, Difference("differ", 6, pytest.approx(1 / 924))),
        (CRITERION, [{0: 20.0, 4: 10.0}] * 6, Difference("same", 6, pytest.approx(1 - 1 / 924))),
        # Rounds that lack an end count for nothing.
        (CRITERION, [*[LOW_BAD] * 5, {0: 10.0}, {4: 20.0}, {0: None, 4: 2.0}, {4: None}, {}], Difference("open", 5)),
        # A limit: the good end may lie on it, the bad end must lie above it. Six rounds on its side show 1 of 64.
        ("p99_ms > 5", [{0: 5.0, 4: 6.0}] * 9, Difference("open", 9, 1 / 64)),
        ("p99_ms > 5", [{0: 5.0, 4: 6.0}] * 10, Difference("differ", 10, 1 / 1024)),
        ("p99_ms > 5", [{0: 4.0, 4: 5.0}] * 10, Difference("same", 6, 1.0)),
        ("p99_ms > 5", [{0: 5.1, 4: 6.0}] * 10, Difference("same", 6, 1.0)),
        ("p99_ms > 0", [{0: 0.0, 4: 1.0}] * 10, Difference("differ", 10, 1 / 1024)),
        ("qps < 5", [{0: 5.0, 4: 4.0}] * 10, Difference("differ", 10, 1 / 1024)),
        ("p99_ms > 100 %", [LOW_BAD, {0: 20.0, 4: 10.0}] * 20, Difference("undecided", 40, 0.5)),
        ("p99_ms > 100 %", [LOW_BAD, {0: 20.0, 4: 10.0}] * 25, Difference("undecided", 40, 0.5)),
    ],
)  # fmt: skip
def test_what_each_look_at_the_ends_decides(criterion: str, rounds: list[Round], expected: Difference) -> None:
    assert looked_at(criterion, rounds) == expected


def test_before_the_last_look_nothing_is_undecided() -> None:
    by_turns: list[Round] = [LOW_BAD, {0: 20.0, 4: 10.0}]
    assert looked_at("p99_ms > 100 %", (by_turns * 20)[:39]).verdict == "open"


@pytest.mark.parametrize(("count", "n", "p"), [(0, 5, 1), (1, 5, 31 / 32), (3, 5, 1 / 2), (5, 5, 1 / 32), (6, 5, 0)])
def test_the_sign_test(count: int, n: int, p: float) -> None:
    assert _at_least(count, n) == p


@pytest.mark.parametrize(("direction", "p"), [(1.0, 0.01), (-1.0, 0.99), (0.0, 0.5)])
def test_one_side_of_a_test_of_two_sides(direction: float, p: float) -> None:
    assert _one_sided(0.02, direction) == p


def test_the_drift_of_a_round_is_the_median_of_the_rounds_near_it() -> None:
    """Both ends rise by 10 each round. Worked out by hand: three rounds before and after, a trial without itself."""
    rounds = [{0: 100.0 + 10 * number, 9: 200.0 + 10 * number} for number in range(9)]
    found = freed(rounds, 9)
    assert found.drift == (-25, -20, -15, -10, 0, 10, 15, 20, 25)
    assert found.good == (120, 130, 130, 140, 140, 140, 150, 150, 160)
    assert found.bad == tuple(value + 100 for value in found.good)


def test_a_round_without_an_end_has_the_drift_of_its_neighbours() -> None:
    assert freed([{0: 1.0}, {9: 5.0, 4: 3.0}, {}], 9) == FreedEnds((1.0,), (5.0,), (0.0, 0.0, 0.0))
    assert freed([{0: 1.0, 9: None}, {9: 5.0}], 9).drift == (0.0, 0.0)


@pytest.mark.parametrize(
    ("good", "bad", "borders"),
    [
        # Medians of 2 and 12, so a margin of 5; the gap from 3 to 11 has 2 for each end.
        ([1, 2, 3], [11, 12, 13], [-4, 5, 9, 18]),
        # They overlap: the quarters of all.
        ([1, 2, 3, 4], [3, 4, 5, 6], [0, 2.75, 3.5, 4.25, 7]),
        ([1, 2, 3], [3, 4, 5], [0, 2.25, 3, 3.75, 6]),
        # An outlier has no bin made for it.
        ([1, 1, 1, 1, 9], [11] * 5, [-4, 3.5, 8.5, 16]),
    ],
)
def test_bins_lie_around_both_ends(good: list[float], bad: list[float], borders: list[float]) -> None:
    assert edges(good, bad) == borders


def test_a_bin_includes_its_upper_edge() -> None:
    assert _counts([1, 2, 2.1, 3], [2, 3]) == (2, 2, 0)
    assert _counts([3.1], [2, 3]) == (0, 0, 1)


@pytest.mark.parametrize(
    ("good", "bad", "beyond"), [(1.0, math.e, 2.0), (1.0, math.e**3, 6.0), (1.0, 1.5, math.log(1.5) + 1)]
)
def test_what_did_not_finish_lies_beyond_the_rest_by_as_much_as_the_rest_differs(
    good: float, bad: float, beyond: float
) -> None:
    found = _numbers(state_of(4, [{0: good, 4: bad}, {0: "unfinished", 4: None}]))
    assert found == [{0: 0.0, 4: pytest.approx(math.log(bad))}, {0: pytest.approx(beyond), 4: None}]


@pytest.mark.parametrize(
    ("weak", "share", "index"),
    [
        ({}, 1 / 2, 2),
        ({}, 1 / 4, 1),
        ({}, 0.99, 3),
        ({}, 0.0, 0),
        ({3: math.log(3)}, 1 / 2, 1),  # weights 3, 3, 3, 1
        ({2: math.log(2)}, 1 / 2, 1),  # weights 2, 2, 1, 1
        ({2: -50.0}, 1 / 4, 2),
    ],
)
def test_the_next_commit_halves_what_is_probable(weak: dict[int, float], share: float, index: int) -> None:
    assert _quantile([1, 2, 3, 4], weak, share) == index


def test_the_more_is_broken_the_further_away_the_next_is_tried() -> None:
    assert [_share(odd, "seed") for odd in range(7)] == [0.5, 0.625, 0.375, 0.75, 0.25, 0.875, 0.125]
    assert 0 <= _share(7, "seed") < 1 and _share(7, "seed") == _share(7, "seed") != _share(8, "seed")


@pytest.mark.parametrize(
    ("probabilities", "error", "first", "last", "probability"),
    [
        ((0.1, 0.6, 0.3), 0.45, 2, 2, 0.6),
        ((0.1, 0.6, 0.3), 0.4, 2, 2, 0.6),
        ((0.1, 0.6, 0.3), 0.2, 2, 5, 0.9),
        ((0.1, 0.6, 0.3), 0.05, 1, 5, 1.0),
        ((0.3, 0.6, 0.1), 0.2, 1, 2, 0.9),
        ((0.25, 0.5, 0.25), 0.3, 2, 5, 0.75),
        ((0.6, 0.3, 0.1), 0.2, 1, 2, 0.9),
    ],
)
def test_an_answer_has_as_many_neighbours_as_the_error_asks_for(
    probabilities: tuple[float, float, float], error: float, first: int, last: int, probability: float
) -> None:
    spans = ((1, 1), (2, 2), (3, 5))
    found = [Cell(*span, each) for span, each in zip(spans, probabilities, strict=True)]
    best = credible(found, error)
    assert (best.first, best.last, best.size) == (first, last, last - first + 1)
    assert best.probability == pytest.approx(probability)
    assert within(found, 2, 5) == pytest.approx(sum(probabilities[1:])) and within(found, 1, 1) == probabilities[0]
    assert within(found, 2, 4) == probabilities[1], "a part of a cell does not count"


@pytest.mark.parametrize(
    ("counts", "probability"), [((1, 0), 1 / 2), ((1, 1), 1 / 6), ((2, 0), 1 / 3), ((3,), 1), ((0, 0), 1)]
)
def test_the_probability_of_trials_of_which_nothing_was_known(counts: tuple[int, ...], probability: float) -> None:
    """Laplace's rule of succession: each trial after the first falls where others fell with (n + 1) / (all + bins)."""
    assert math.exp(log_likelihood(counts)) == pytest.approx(probability)
