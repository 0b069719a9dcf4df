"""A busy machine fails no test of ours, and excuses no trap that is broken."""

from __future__ import annotations

from pathlib import Path

import others
import pytest
from others import Moment

from dnsrig.procedures.parts.validity import why_link_did_not
from dnsrig.rundir import PathSpec, TrialRecord
from dnsrig.traps import all_traps

BUSY, IDLE = 0.5, 0.03
BEFORE = Moment(time_s=100, programs_s=50, steal_s=1, own_s=7)


@pytest.mark.parametrize(
    ("after", "share"),
    [
        (Moment(110, 54, 1, 11), 0.0),
        (Moment(110, 59, 1, 11), 0.5),
        (Moment(110, 54, 3, 11), 0.2),
        (Moment(110, 53, 1, 11), 0.0),
    ],
    ids=["all is our own", "another program", "the hypervisor", "a rounding error"],
)
def test_what_others_took(after: Moment, share: float) -> None:
    assert others.share_of_others(BEFORE, after) == pytest.approx(share)


def test_the_accounts_of_this_machine_only_grow() -> None:
    before = Moment.now()
    sum(number * number for number in range(100_000))
    after = Moment.now()
    assert after.time_s > before.time_s and after.own_s > before.own_s
    assert after.programs_s >= before.programs_s > 0 and after.steal_s >= before.steal_s


def test_contention_on_a_busy_machine_cannot_be_judged() -> None:
    assert others.excused({"cpu-contention"}, BUSY)
    assert others.excused((), BUSY), "an instrument that was late: the trial is invalid"
    with pytest.raises(pytest.skip.Exception, match="cannot judge here: others took 50% of a CPU, and it was late"):
        others.skip_if_excused({"generator-bottleneck"}, BUSY, "it was late")


def test_on_an_idle_machine_everything_is_judged() -> None:
    assert not others.excused({"cpu-contention"}, IDLE)
    assert not others.excused((), IDLE)


def test_a_trap_broken_on_purpose_fails_under_load() -> None:
    broken = set(all_traps()) - others.TOLD_BY_TIME
    assert broken and not any(others.excused({trap}, BUSY) for trap in broken)
    assert not others.excused({"records-missing", "cpu-contention"}, BUSY), "one that is excused excuses no other"


@pytest.mark.parametrize(
    ("trials", "taken"),
    [(["done"], 1), (["late", "done"], 2), (["late", "late", "late"], 3), (["wrong"], 1), (["late", "wrong"], 2)],
)
def test_a_trial_is_repeated_while_its_instrument_is_late_and_not_for_ever(trials: list[str], taken: int) -> None:
    """A machine that stands still for a moment fails no test; an instrument that is always late does, and so does
    whatever else is wrong."""
    late = why_link_did_not({"late_ns": {"p99": 37_100_000}}, PathSpec(delay_ms=15))
    records = {
        "done": TrialRecord.model_construct(outcome="done", reason=""),
        "late": TrialRecord.model_construct(outcome="invalid", reason=f"primary-secondary, forward: {late}"),
        "wrong": TrialRecord.model_construct(outcome="invalid", reason="answers are missing"),
    }
    executed = [records[name] for name in [*trials, "done", "done"]]
    left = iter(executed)
    assert others.until_in_time(left.__next__) is executed[taken - 1]
    assert len([*left]) == len(executed) - taken


def report(name: str, reason: str) -> pytest.TestReport:
    return pytest.TestReport(
        f"tests/{name}.py::test",
        (f"tests/{name}.py", 0, "test"),
        {},
        "skipped",
        (str(Path(name)), 1, f"Skipped: {reason}"),
        "call",
    )


def test_the_closing_lines_count_what_was_not_judged() -> None:
    skipped = [report("one", "cannot judge here: others took 50% of a CPU"), report("two", "no perf")]
    first, last = others.closing_lines(skipped)
    assert first.startswith("tests/one.py::test: Skipped: cannot judge here")
    assert last == "1 could not be judged here"
    assert others.closing_lines([]) == ["0 could not be judged here"]
