"""Manipulation checks: each passes where the stimulus was there, fails where it was not, and says so where nothing
tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import trial_data
from trial_data import SECOND, clean_trial

from dnsrig import checks
from dnsrig.rundir import Check, TrialSpec
from dnsrig.runs.trial import Trial

LONG_S = 10
"""How long `measure` lasts in these trials."""


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    found = clean_trial(tmp_path / "run")
    trial_data.measured(found, LONG_S)
    return found


def verdict(trial: Trial, name: str) -> Check:
    check = trial_data.check(name, trial)
    assert bool(check.reason) == (check.verdict != "passed")
    return check


def look_by(
    look: Callable[[Trial], checks.Seen],
    monkeypatch: pytest.MonkeyPatch,
    applies: Callable[[TrialSpec], bool] | None = None,
) -> None:
    """Replace all checks by one check ``thing``."""
    only = checks.ManipulationCheck("thing", "a thing", "%", "", look, applies)
    monkeypatch.setattr(checks, "all_checks", lambda: {"thing": only})


# The model


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (checks.Seen(80.0, least=80.0), "passed"),
        (checks.Seen(79.9, least=80.0), "failed"),
        (checks.Seen(1.2, least=0.9, most=1.1), "failed"),
        (checks.Seen(1.0, least=0.9, most=1.1), "passed"),
        (checks.Seen("cubic", asked="bbr"), "failed"),
        (checks.Seen("bbr", asked="bbr"), "passed"),
        (checks.Seen(None, why="no rows"), "cannot-tell"),
        (checks.Seen(0, least=1), "failed"),
    ],
)
def test_a_verdict_by_what_was_seen(
    trial: Trial, seen: checks.Seen, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_by(lambda trial: seen, monkeypatch)
    assert verdict(trial, "thing").verdict == expected


def test_only_a_failed_check_makes_a_trial_invalid() -> None:
    def check(verdict: Any) -> Check:
        return Check(name="x", title="x", verdict=verdict, reason=f"it {verdict}")

    assert checks.why_invalid([check("passed"), check("cannot-tell")]) == ""
    assert (
        checks.why_invalid([check("failed"), check("failed")])
        == "it does not match its variant: it failed (and 1 more)"
    )


def test_a_check_that_raises_cannot_tell(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    look_by(lambda trial: checks.Seen(1 / 0), monkeypatch)
    assert "ZeroDivisionError" in verdict(trial, "thing").reason


def test_a_check_that_cannot_decide_whether_it_applies_is_left_out(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    look_by(lambda trial: checks.Seen(1), monkeypatch, applies=lambda spec: bool(1 / 0))
    assert checks.for_any_procedure(trial.record.spec) == []
    assert caplog.messages == ["check thing left out: ZeroDivisionError: division by zero"]


# Changes


def changed(trial: Trial, accepted_s: Iterable[float | None], rate_per_s: float = 1.0, kind: str = "remove") -> None:
    """Zone n changes n seconds after the begin of `measure`; None: that change is not accepted."""
    assert trial.measure is not None
    start, times = trial.measure.start.monotonic_ns, list(accepted_s)
    trial.record.spec.options |= {"changes_per_s": rate_per_s}
    trial.__dict__["changes"] = pl.DataFrame(
        {
            "zone": [f"z{number}" for number in range(len(times))],
            "kind": [kind] * len(times),
            "due_ns": [start + round(number / rate_per_s * SECOND) for number in range(len(times))],
            "accepted_ns": [None if at is None else start + round(at * SECOND) for at in times],
        },
        schema={"zone": pl.String, "kind": pl.String, "due_ns": pl.Int64, "accepted_ns": pl.Int64},
    )


def followed(trial: Trial, seen_s: Iterable[float | None], served: bool = False) -> None:
    """When zone n was first seen in another state; each was there before; None: never."""
    assert trial.measure is not None
    start = trial.measure.start.monotonic_ns
    rows: list[tuple[str, int | None, int, bool]] = []
    for number, at in enumerate(seen_s):
        rows.append((f"z{number}", None, start - SECOND, not served))
        if at is not None:
            rows.append((f"z{number}", start, start + round(at * SECOND), served))
    trial.__dict__["followed"] = pl.DataFrame(
        rows,
        schema={"zone": pl.String, "before_ns": pl.Int64, "seen_ns": pl.Int64, "served": pl.Boolean},
        orient="row",
    )


def test_changes_that_the_primary_does_not_accept(trial: Trial) -> None:
    changed(trial, [0.1 + n for n in range(10)])
    assert verdict(trial, "changes-made").verdict == "passed"
    changed(trial, [0.1, 1.1, *[None] * 8])
    check = verdict(trial, "changes-made")
    assert (check.verdict, check.seen) == ("failed", 20.0) and "2 of about 10" in check.reason
    changed(trial, [])
    assert verdict(trial, "changes-made").verdict == "cannot-tell"


def test_changes_after_the_end_are_none_of_this_trial(trial: Trial) -> None:
    changed(trial, [n + LONG_S for n in range(10)])
    assert verdict(trial, "changes-made").verdict == "failed"


def test_a_secondary_that_serves_no_change_was_at_rest(trial: Trial) -> None:
    """`catalog-churn` with PowerDNS, and with 100,000 zones: the trial was `done`, and nothing had changed on the
    secondary."""
    changed(trial, [0.1 + n for n in range(10)])
    followed(trial, [None] * 10)
    check = verdict(trial, "changes-served")
    assert (check.verdict, check.seen) == ("failed", 0.0) and "0 of 10" in check.reason
    assert verdict(trial, "change-delay").verdict == "cannot-tell"


def test_a_secondary_that_follows(trial: Trial) -> None:
    changed(trial, [0.1 + n for n in range(10)])
    followed(trial, [0.6 + n for n in range(8)] + [None, None])
    assert (verdict(trial, "changes-served").verdict, verdict(trial, "changes-served").seen) == ("passed", 80.0)
    assert verdict(trial, "change-delay").seen == 500.0


def test_what_was_served_after_the_end_does_not_count(trial: Trial) -> None:
    changed(trial, [0.1 + n for n in range(10)])
    followed(trial, [LONG_S + 1.0] * 10)
    assert verdict(trial, "changes-served").verdict == "failed"


def test_a_member_that_is_still_there_did_not_leave(trial: Trial) -> None:
    changed(trial, [0.1 + n for n in range(10)], kind="remove")
    followed(trial, [0.6 + n for n in range(10)], served=True)
    assert verdict(trial, "changes-served").verdict == "failed"


def test_two_changes_are_too_few_to_speak_of(trial: Trial) -> None:
    changed(trial, [0.1, 1.1])
    followed(trial, [0.6, 1.6])
    assert verdict(trial, "changes-served").verdict == "failed"
