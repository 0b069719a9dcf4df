"""A cold page cache, as S1 saw it: a primary that waited 1 to 5 % of its time for reads."""

from __future__ import annotations

from pathlib import Path

import pytest
import synthetic
from trial_data import clean_trial, judge, measured, series, use

from dnsrig.runs.trial import Trial

MB = 1 << 20


def loaded(directory: Path, subject: str, waited_ms: int, grown_bytes: int) -> Trial:
    """A trial of 10 s in which the host under test waited so long while its file cache grew and shrank again."""
    trial = clean_trial(directory / "run", synthetic.Plan(subject=subject))
    start = measured(trial, 10)
    columns = {
        f"{subject}__psi__io_some_us": [1000 * waited_ms * tick // 11 for tick in range(12)],
        f"{subject}__cgroup__memory_file_bytes": [5000, *[5000 + grown_bytes] * 9, 6000, 6000],
    }
    use(trial, series(start, **columns))
    return trial


@pytest.mark.parametrize(
    ("subject", "waited_ms", "grown_bytes", "verdict"),
    [
        ("primary", 330, 90 * MB, "found"),
        ("primary", 120, MB, "found"),
        ("primary", 80, 90 * MB, "clear"),
        ("primary", 100, MB, "found"),
        ("primary", 99, MB, "clear"),
        ("primary", 330, MB - 1, "clear"),
        ("secondary", 330, 0, "clear"),
        ("secondary", 330, 90 * MB, "cannot-tell"),
    ],
)
def test_cold_page_cache(tmp_path: Path, subject: str, waited_ms: int, grown_bytes: int, verdict: str) -> None:
    finding = judge("cold-page-cache", loaded(tmp_path, subject, waited_ms, grown_bytes))
    assert finding.verdict == verdict
    if waited_ms == 330 and verdict == "found":
        assert finding.evidence["io_wait_s"] == pytest.approx(0.3, abs=0.04)
        assert finding.evidence["io_wait_percent"] == pytest.approx(3.0, abs=0.4)
        assert finding.evidence["file_cache_grown_bytes"] == 90 * MB
        assert finding.metrics == ("load_time_s", "io_wait_s")


def test_a_few_pages_in_a_short_trial_are_no_cold_page_cache(tmp_path: Path) -> None:
    trial = loaded(tmp_path, "primary", 9, 2 * MB)
    assert trial.measure is not None
    trial.measure.end.monotonic_ns = trial.measure.start.monotonic_ns + 100_000_000
    assert judge("cold-page-cache", trial).verdict == "clear"


def test_the_experiment_may_have_asked_for_it(tmp_path: Path) -> None:
    trial = loaded(tmp_path, "primary", 330, 90 * MB)
    trial.record.spec.options["page_cache"] = "cold"
    finding = judge("cold-page-cache", trial)
    assert finding.evidence["page_cache"] == "cold" and "asked for a cold page cache" in finding.summary


def test_cold_page_cache_without_samples(tmp_path: Path) -> None:
    trial = loaded(tmp_path, "primary", 330, 90 * MB)
    use(trial, series(0))
    assert judge("cold-page-cache", trial).verdict == "cannot-tell"
