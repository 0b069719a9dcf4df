"""Growth with the number of zones: linear laws with any start cost are clear, faster ones are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
import trial_data
from hypothesis import assume, given
from hypothesis import strategies as st

from dnsrig.runs.run import Run
from dnsrig.traps import Conclusion
from dnsrig.traps.non_linear_growth import SMALLEST_EXCESS_S, Size, first_rise

SIZES = [1_000, 2_000, 4_000, 8_000, 16_000]
noises = st.lists(st.floats(min_value=0.9, max_value=1.1), min_size=15, max_size=15)


def measured(law: Callable[[int], float], noise: list[float], sizes: list[int] = SIZES) -> list[Size]:
    """Three repeats a size."""
    repeats = [noise[3 * number : 3 * number + 3] for number in range(len(sizes))]
    return [
        Size(f"v{zones}", zones, [], [law(zones) * n for n in some], censored=False)
        for zones, some in zip(sizes, repeats, strict=False)
    ]


def series_of(directory: Path, law: dict[int, float], **plan: object) -> Run:
    """A run of one server whose repeats all take what ``law`` says of their number of zones."""
    made = synthetic.Plan(servers=["bind@system"], zones=list(law), **plan)  # type: ignore[arg-type]
    run = Run.open(synthetic.build(directory / "run", made))
    for trial in run.trials:
        if trial.record.outcome == "done":
            trial.record.metrics["transfer_time_s"] = law[trial.record.spec.dataset.zones]
    return run


def across(run: Run) -> list[tuple[str, Conclusion]]:
    return trial_data.across("non-linear-growth", run)


@given(start_s=st.floats(0, 100), zone_ms=st.floats(0, 100), noise=noises)
def test_a_linear_law_is_clear(start_s: float, zone_ms: float, noise: list[float]) -> None:
    assert first_rise(measured(lambda zones: start_s + zone_ms * zones / 1e3, noise)) is None


@given(zone_us=st.floats(0.01, 100), start_s=st.floats(0, 1), noise=noises)
def test_a_quadratic_law_is_found(zone_us: float, start_s: float, noise: list[float]) -> None:
    def law(zones: int) -> float:
        return start_s + zone_us * zones**2 / 1e6

    assume(law(16_000) - 2 * law(8_000) > 8 * start_s + 10 * SMALLEST_EXCESS_S)
    assert first_rise(measured(law, noise)) is not None


@given(noise=noises, zone_ms=st.floats(1, 10))
def test_the_first_size_behind_the_wall_is_named(noise: list[float], zone_ms: float) -> None:
    pair = first_rise(measured(lambda zones: zone_ms * zones / 1e3 + (90 if zones >= 8_000 else 0), noise))
    assert pair is not None
    assert (pair[0].zones < 8_000, pair[1].zones) == (True, 8_000)


def test_the_finding_stands_at_its_size_with_its_reason(tmp_path: Path) -> None:
    """Where ports run out, and only there, the growth is put down to it."""
    run = series_of(tmp_path, {50: 1.0, 80: 1.6, 200: 66.0})
    for trial in run.trials:
        if trial.record.spec.dataset.zones < 200:
            trial.record.logs["secondary"].failures = {}
    ((variant, finding),) = across(run)
    assert run.manifest.specs[variant].dataset.zones == 200
    assert finding.verdict == "found"
    assert finding.evidence["why"] == "ports-exhausted"
    assert finding.evidence["predicted_s"] == pytest.approx(4.0)
    assert finding.evidence["measured_s"] == pytest.approx(66.0)
    assert (finding.evidence["ms_per_zone_before"], finding.evidence["ms_per_zone_here"]) == (20, 330)
    assert "ports-exhausted" in finding.summary


def test_a_reason_that_was_there_before_is_none(tmp_path: Path) -> None:
    run = series_of(tmp_path, {150: 1.0, 300: 66.0})
    ((_, finding),) = across(run)
    assert (finding.verdict, finding.evidence["why"]) == ("found", "")
    assert "No other trap shows a reason" in finding.summary


def test_a_trial_at_its_limit_took_longer_still(tmp_path: Path) -> None:
    outcomes = {("bind@system", 400, repeat): "timeout" for repeat in (1, 2, 3)}
    run = series_of(tmp_path, {100: 0.5, 200: 1.0, 400: 0.0}, outcomes=outcomes, limit_s=20.0)
    ((variant, finding),) = across(run)
    assert run.manifest.specs[variant].dataset.zones == 400
    assert finding.verdict == "found" and finding.evidence["at_limit"] is True
    assert "at least 20 s" in finding.summary


def test_nothing_is_held_against_a_size_at_its_limit(tmp_path: Path) -> None:
    outcomes = {("bind@system", 100, repeat): "timeout" for repeat in (1, 2, 3)}
    run = series_of(tmp_path, {100: 0.0, 200: 9.0}, outcomes=outcomes, limit_s=2.0)
    ((_, finding),) = across(run)
    assert finding.verdict == "cannot-tell"
    assert "No smaller size" in finding.summary


def test_clear_stands_at_the_largest_size_that_was_measured(tmp_path: Path) -> None:
    run = series_of(tmp_path, {100: 0.5, 200: 1.0, 400: 2.0})
    run.__dict__["trials"] = [trial for trial in run.trials if trial.record.spec.dataset.zones < 400]
    ((variant, finding),) = across(run)
    assert (run.manifest.specs[variant].dataset.zones, finding.verdict) == (200, "clear")


def test_a_largest_size_that_failed_cannot_be_told(tmp_path: Path) -> None:
    outcomes = {("bind@system", 400, 2): "server-failed"}
    run = series_of(tmp_path, {100: 0.5, 200: 1.0, 400: 2.0}, outcomes=outcomes)
    ((variant, finding),) = across(run)
    assert (run.manifest.specs[variant].dataset.zones, finding.verdict) == (400, "cannot-tell")
    assert "400 zones" in finding.summary


def test_of_a_server_that_ran_before_the_watching_is_counted_from_measure(tmp_path: Path) -> None:
    outcomes = {("bind@system", 400, repeat): "timeout" for repeat in (1, 2, 3)}
    run = series_of(tmp_path, {100: 0.5, 400: 0.0}, outcomes=outcomes, limit_s=20.0)
    for trial in run.trials:
        assert trial.server is not None and trial.measure is not None
        trial.server.exec_ns = trial.measure.start.monotonic_ns - 60 * synthetic.SECOND
    ((_, finding),) = across(run)
    assert finding.evidence["measured_s"] == pytest.approx(20.1), "measure begins 0.1 s before the synthetic exec"


def test_a_start_that_differs_by_chance_is_no_growth(tmp_path: Path) -> None:
    ((_, finding),) = across(series_of(tmp_path, {100: 0.03, 200: 0.21}))
    assert finding.verdict == "clear"


def test_growth_is_judged_a_server_at_a_time(tmp_path: Path) -> None:
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(extra_axes={"transport": ["tcp", "xot"]})))
    assert len(across(run)) == 4, "two servers, two transports"


def test_growth_with_too_few_repeats(tmp_path: Path) -> None:
    ((_, finding),) = across(series_of(tmp_path, {100: 1.0, 200: 60.0}, repeats=2))
    assert finding.verdict == "cannot-tell"


def test_growth_of_one_size_is_no_question(tmp_path: Path) -> None:
    assert across(series_of(tmp_path, {100: 1.0})) == []
