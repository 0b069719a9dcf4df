"""The wall clock: stepped, slewed, or kept right by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from trial_data import anchor, clean_trial, judge

from dnsrig.lab import clock, conditions
from dnsrig.rundir import Anchor
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import clock_steps, examine

ZERO = Anchor(monotonic_ns=5_000_000_000_000, realtime_ns=1_735_732_800_000_000_000, error_ns=200)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    found = clean_trial(tmp_path / "run")
    phase = found.measure
    assert phase is not None
    found.record.phases = [phase]
    phase.end = anchor(phase.start, 30)
    return found


def read_in_between(trial: Trial, set_by_s: float, error_ns: int = 200) -> None:
    """The clock was set some time before the reading 10 s after the start of `measure`."""
    phase = trial.measure
    assert phase is not None
    trial.record.anchors = [anchor(phase.start, 10, set_by_s=set_by_s, error_ns=error_ns)]
    phase.end = anchor(phase.start, 30, set_by_s=set_by_s)


@pytest.mark.parametrize(
    ("set_by_s", "verdict"), [(2.5, "found"), (-2.5, "found"), (0.0011, "found"), (0.0009, "clear"), (0.0, "clear")]
)
def test_clock_steps(trial: Trial, set_by_s: float, verdict: str) -> None:
    read_in_between(trial, set_by_s)
    finding = judge("clock-steps", trial)
    assert finding.verdict == verdict
    if abs(set_by_s) == 2.5:
        assert finding.evidence["largest_step_s"] == pytest.approx(set_by_s)
        assert finding.evidence["earliest_s"] == pytest.approx(-0.1), "measure begins 0.1 s before exec"
        assert finding.evidence["latest_s"] == pytest.approx(9.9)
        assert finding.evidence["steps"] == 1


def test_a_reading_that_took_long_is_no_step(trial: Trial) -> None:
    read_in_between(trial, 0.0)
    trial.record.anchors = [anchor(trial.anchors[0], 10, set_by_s=0.5, error_ns=600_000_000)]
    assert judge("clock-steps", trial).verdict == "clear"


def test_clock_steps_without_readings(trial: Trial) -> None:
    trial.record.phases = []
    assert judge("clock-steps", trial).verdict == "cannot-tell"


gaps = st.lists(st.floats(min_value=0.001, max_value=60), min_size=1, max_size=20)


@given(
    gaps=gaps, wrong_by=st.lists(st.integers(min_value=-100_000_000, max_value=100_000_000), min_size=20, max_size=20)
)
def test_readings_that_are_wrong_within_their_error_show_no_step(gaps: list[float], wrong_by: list[int]) -> None:
    """A clock that is slewed needs no room: it takes the monotonic one along."""
    readings, passed_s = [ZERO], 0.0
    for gap_s, wrong_ns in zip(gaps, wrong_by, strict=False):
        passed_s += gap_s
        readings.append(anchor(ZERO, passed_s, set_by_s=wrong_ns / 1e9, error_ns=abs(wrong_ns)))
    assert clock_steps.steps(readings) == []


def test_what_is_allowed_does_not_grow_with_the_time_between_readings() -> None:
    assert len(clock_steps.steps([ZERO, anchor(ZERO, 3600, set_by_s=0.002)])) == 1


@given(gaps=gaps, which=st.integers(min_value=0), size_s=st.floats(min_value=0.0011, max_value=1e6), back=st.booleans())
def test_a_step_is_found_where_it_was(gaps: list[float], which: int, size_s: float, back: bool) -> None:
    step_s = -size_s if back else size_s
    readings, passed_s, where = [ZERO], 0.0, which % len(gaps)
    for number, gap_s in enumerate(gaps):
        passed_s += gap_s
        readings.append(anchor(ZERO, passed_s, set_by_s=step_s if number >= where else 0.0))
    (found,) = clock_steps.steps(readings)
    assert found.size_ns == pytest.approx(step_s * 1e9, abs=1000)
    assert (found.before, found.after) == (readings[where], readings[where + 1])


@pytest.mark.parametrize(("said", "verdict"), [(True, "clear"), (False, "cannot-tell"), (None, "cannot-tell")])
def test_unsynchronised_clock(tmp_path: Path, said: bool | None, verdict: str) -> None:
    """By itself it is told, and never found: dnsrig's times do not depend on it."""
    run = Run.open(synthetic.build(tmp_path / "run"))
    run.manifest.conditions["clock_synchronised"] = said
    (finding,) = [finding for finding in examine(run) if finding.trap == "unsynchronised-clock"]
    assert (finding.verdict, finding.variant) == (verdict, None)
    assert "STA_UNSYNC" in finding.summary or said is not False


def test_what_the_kernel_says_is_in_the_snapshot() -> None:
    snapshot, said = conditions.snapshot(), clock.synchronisation()
    assert said is not None
    assert snapshot["clock_synchronised"] == said.synchronised
    assert 0 <= said.error_bound_us <= 16_000_000, "the kernel's own bound (adjtimex)"


def test_a_log_is_read_by_the_anchor_nearest_to_it(trial: Trial) -> None:
    """After a step, times of the log belong to the clock as it was then."""
    read_in_between(trial, 2.5)
    late = trial.anchors[-1]
    assert trial.since_exec_s(late.realtime_ns) == pytest.approx(29.9)
    assert trial.since_exec_s(trial.anchors[0].realtime_ns) == pytest.approx(-0.1)
    assert trial.since_exec_s(None) is None
