"""What is derived from a run where it is cheap: findings that are still true, and damage of small files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from synthetic import Plan, build

from dnsrig import checksums
from dnsrig.browse import derived
from dnsrig.rundir import Findings, write_json
from dnsrig.runs.run import Run

S = 10**9


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two trials, of which one has a file that is cut."""
    directory = build(tmp_path / "run", Plan(servers=["bind@system"], zones=[5], repeats=2))
    samples = directory / "trials/v00/01/samples.arrow"
    samples.write_bytes(samples.read_bytes()[:-50])
    return Run.open(directory)


def nbytes(run: Run) -> list[int]:
    """Size of the files of each trial."""
    return [
        sum((trial.directory / name).stat().st_size for name in checksums.names(trial.directory))
        for trial in run.trials
    ]


@pytest.mark.parametrize(("written_s", "is_true"), [(999, False), (1000, True), (1001, True)])
def test_findings_are_true_until_a_trial_is_newer(run: Run, written_s: int, is_true: bool) -> None:
    write_json(run.directory / "findings.json", Findings(findings=[], failures=[]))
    for trial, newest_s in zip(run.trials, (500, 1000)):
        os.utime(trial.directory / "trial.json", ns=(newest_s * S, newest_s * S))
    os.utime(run.directory / "findings.json", ns=(written_s * S, written_s * S))
    assert derived.findings(run) == ([] if is_true else None)


@pytest.mark.parametrize("text", [None, "{"])
def test_without_findings_that_can_be_read_the_run_is_examined(run: Run, text: str | None) -> None:
    if text is not None:
        (run.directory / "findings.json").write_text(text)
    assert derived.findings(run) is None


def test_files_are_checked_up_to_a_limit_for_the_trial_and_for_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, whole = run.trials
    of_cut, of_whole = nbytes(run)
    assert list(derived.damage(cut, of_cut)) == ["samples.arrow"]
    assert derived.damage(cut, of_cut - 1) == derived.damage(whole, of_whole) == {}
    assert list(derived.damage_of(run)) == [cut.directory]
    monkeypatch.setattr(derived, "MOST_CHECKED_BYTES", (of_cut + of_whole) / 4)
    assert list(derived.damage_of(run)) == [cut.directory]
    monkeypatch.setattr(derived, "MOST_CHECKED_BYTES", (of_cut + of_whole - 1) / 4)
    assert derived.damage_of(run) == {}
