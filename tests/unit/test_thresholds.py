"""Thresholds that fail a comparison: what they decide, and that they never decide too much."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dnsrig.comparison.criterion import Criterion
from dnsrig.comparison.thresholds import Decision, Repeats, judge, overall, parse
from dnsrig.errors import UsageError
from dnsrig.rundir import Outcome
from dnsrig.stats.samples import Samples


def rule(metric: str, above: bool, percent: float) -> Criterion:
    return Criterion(metric=metric, above=above, limit=percent, unit="%")


SLOWER = rule("transfer_time_s", True, 110)
times = st.lists(st.floats(0.1, 100), min_size=5, max_size=8)
limits = st.floats(10, 1000)


def repeats(values: list[float], **others: int) -> Repeats:
    outcomes: Counter[Outcome] = Counter({"done": len(values)})
    for outcome, count in others.items():
        outcomes[outcome.replace("_", "-")] = count  # type: ignore[index]
    return Repeats(Samples.exact(values), outcomes)


def decision(rule: Criterion, base: Repeats, new: Repeats) -> Decision:
    return judge([(rule, base, new)])[0].decision


BASE = repeats([10.0, 10.1, 10.2, 10.3, 10.4])


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ([12.0, 12.1, 12.2, 12.3, 12.4], "regression"),
        ([10.0, 10.1, 10.2, 10.3, 10.4], "pass"),
        ([10.9, 11.1, 11.3, 11.5, 11.7], "undecided"),
        ([1.0, 1.1, 1.2, 1.3, 1.4], "pass"),
    ],
)
def test_the_interval_decides(new: list[float], expected: str) -> None:
    assert decision(SLOWER, BASE, repeats(new)) == expected


def test_a_rule_from_below() -> None:
    fewer = rule("zones_per_s", False, 95)
    assert decision(fewer, BASE, repeats([8.0] * 5)) == "regression"
    assert decision(fewer, BASE, repeats([12.0] * 5)) == "pass"


@pytest.mark.parametrize("n", [0, 1, 4])
def test_few_repeats_decide_nothing(n: int) -> None:
    few = repeats([100.0] * n)
    assert decision(SLOWER, BASE, few) == "undecided"
    assert decision(SLOWER, few, BASE) == "undecided"
    assert decision(SLOWER, few, repeats([], timeout=n)) == "undecided"


def test_a_new_run_that_does_not_finish_is_a_regression() -> None:
    assert decision(SLOWER, BASE, repeats([10.0] * 4, timeout=1)) == "regression"
    assert decision(SLOWER, BASE, repeats([], server_failed=5)) == "regression"
    assert decision(SLOWER, repeats([10.0] * 4, timeout=1), BASE) == "undecided"
    assert decision(SLOWER, repeats([], timeout=5), repeats([], timeout=5)) == "undecided"


def test_invalid_trials_do_not_count_as_repeats() -> None:
    assert decision(SLOWER, BASE, repeats([12.0] * 4, invalid=6)) == "undecided"


def test_a_metric_that_is_missing_is_undecided() -> None:
    assert decision(SLOWER, BASE, Repeats(Samples(), Counter({"done": 5}))) == "undecided"


def test_nothing_against_nothing_is_no_change() -> None:
    nothing = repeats([0.0] * 5)
    assert decision(SLOWER, nothing, nothing) == "pass"
    assert decision(SLOWER, repeats([0.0, *[1.0] * 4]), repeats([1.0] * 5)) == "undecided", "no percentage of zero"
    assert decision(rule("zones_per_s", False, 90), nothing, repeats([1.0] * 5)) == "undecided"


def test_something_from_nothing_is_a_regression() -> None:
    """Retransmissions, say: no percentage, but the rank test can tell."""
    nothing, more = repeats([0.0] * 5), repeats([3.0, 4.0, 7.0, 9.0, 9.0])
    (found,) = judge([(SLOWER, nothing, more)])
    assert (found.decision, found.reason, found.interval) == ("regression", "from nothing to 7", None)
    assert decision(SLOWER, nothing, repeats([0.0, 0.0, 3.0, 4.0, 5.0])) == "undecided", "p is 0.17"
    many = judge([(SLOWER, nothing, more)] * 7)
    assert {j.decision for j in many} == {"undecided"} and "after correction" in many[0].reason
    most = judge([(SLOWER, repeats([0.0] * 20), repeats([*[0.0] * 11, *[5.0] * 9]))])[0]
    assert most.p_corrected is not None and most.p_corrected < 0.05
    assert most.decision == "undecided", "the median is still nothing"


def test_many_comparisons_ask_for_more_repeats() -> None:
    """Five against five give p = 2/252 at best: with seven variants no longer below 0.05."""
    slower = repeats([12.0, 12.1, 12.2, 12.3, 12.4])
    assert {j.decision for j in judge([(SLOWER, BASE, slower)] * 6)} == {"regression"}
    seven = judge([(SLOWER, BASE, slower)] * 7)
    assert {j.decision for j in seven} == {"undecided"}
    assert all("more repeats" in j.reason for j in seven)
    one_of_ten = judge([(SLOWER, BASE, slower), *[(SLOWER, BASE, BASE)] * 9])
    assert one_of_ten[0].decision == "undecided", "ten were looked at, whatever nine of them show"


@settings(max_examples=60, deadline=None)
@given(times, times, limits)
def test_a_rule_never_passes_what_its_opposite_side_fails(base: list[float], new: list[float], limit: float) -> None:
    """Beyond the limit in both directions at once is impossible, and so is passing what is beyond."""
    above = judge([(rule("m", True, limit), repeats(base), repeats(new))])[0]
    below = judge([(rule("m", False, limit), repeats(base), repeats(new))])[0]
    assert {above.decision, below.decision} != {"regression"}
    if above.decision == "regression":
        assert below.decision == "pass"
        assert above.interval is not None and above.interval.low > limit
    if above.decision == "pass":
        assert above.interval is not None and above.interval.high <= limit


@settings(max_examples=60, deadline=None)
@given(times, times, limits, st.floats(1, 10))
def test_a_more_lenient_limit_never_fails_what_passed(
    base: list[float], new: list[float], limit: float, more: float
) -> None:
    strict = decision(rule("m", True, limit), repeats(base), repeats(new))
    lenient = decision(rule("m", True, limit * more), repeats(base), repeats(new))
    if strict == "pass":
        assert lenient == "pass"


@settings(max_examples=60, deadline=None)
@given(times)
def test_a_run_held_against_itself_never_fails(base: list[float]) -> None:
    assert decision(rule("m", True, 100), repeats(base), repeats(base)) != "regression"
    assert decision(rule("m", False, 100), repeats(base), repeats(base)) != "regression"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("transfer_time_s > 110 %", rule("transfer_time_s", True, 110)),
        ("  zones_per_s<99.5%", rule("zones_per_s", False, 99.5)),
    ],
)
def test_a_rule_is_read(text: str, rule: Criterion) -> None:
    assert parse(text) == rule
    assert parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "transfer_time_s",
        "transfer_time_s > 110",
        "x >= 5 %",
        "x > -5 %",
        "x > 0 %",
        "x > 1e3 %",
        "X > ١٠ %",
        "a b > 1 %",
    ],
)
def test_what_is_no_rule_says_what_one_is(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert "--fail-if" in raised.value.hint


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_a_usage_error(text: str) -> None:
    try:
        rule = parse(text)
    except UsageError:
        return
    assert rule.percent > 0


@pytest.mark.parametrize(
    ("decisions", "whole"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "undecided"], "undecided"),
        (["undecided", "regression", "pass"], "regression"),
    ],
)
def test_the_worst_decides(decisions: list[Decision], whole: str) -> None:
    assert overall(decisions) == whole
