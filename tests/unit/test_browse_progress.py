"""A run in progress, as its directory tells."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest
from browsing import FIRST, address, client, runs
from synthetic import Plan, build

from dnsrig.browse import progress
from dnsrig.browse.progress import duration
from dnsrig.runs.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Four trials, of which two are finished, one is being executed and one was aborted."""
    directory = build(tmp_path / "run", Plan(zones=[50], repeats=2, outcomes={("knot@system", 50, 1): "timeout"}))
    for variant, ending in (("v00", "running"), ("v01", "aborted")):
        shutil.rmtree(directory / f"trials/{variant}/02")
        (directory / f"trials/{variant}/02.{ending}").mkdir()
    os.utime(directory / "trials/v00/02.running", (1040, 1040))
    return Run.open(directory)


def test_what_is_told(run: Run) -> None:
    found = progress.progress(run, [1000.0, 1030.0], 1050.0, executing=True)
    assert (found.planned, found.finished, found.complete) == (4, 2, False)
    assert [(now.key.variant, now.key.repeat, now.since_s) for now in found.now] == [("v00", 2, 10.0)]
    assert found.left_s == 2 * 30 - 10
    assert [trial.key.variant for trial in found.last] == ["v01", "v00"]
    assert found.not_done == {"timeout": 1}
    assert found.aborted == ["server=knot@system zones=50 repeat 2"]


def test_of_a_run_that_nobody_executes_there_is_no_estimate(run: Run) -> None:
    found = progress.progress(run, [1000.0, 1030.0], 9999.0, executing=False)
    assert found.now == [] and found.left_s is None
    assert progress.progress(run, [1000.0, 1000.0], 1050.0, executing=True).left_s == 0


def test_who_executes_is_looked_up_and_not_disturbed(tmp_path: Path) -> None:
    assert not progress.is_executing(tmp_path)
    with (tmp_path / ".lock").open("w") as lock:
        assert not progress.is_executing(tmp_path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not progress.LOCKS.exists() or str(os.getpid()) not in progress.LOCKS.read_text():
            pytest.skip("/proc/locks does not tell of this file system or namespace")
        assert progress.is_executing(tmp_path)
    assert not progress.is_executing(tmp_path)


def test_the_page_and_what_it_asks_for(tmp_path: Path) -> None:
    pages = client(runs(tmp_path / "runs"), tmp_path)
    page = pages.get(address(FIRST, "live")).text
    assert '<strong data-live="state">complete' in page
    now = pages.get(address(FIRST, "live.json")).json()
    assert (now["finished"], now["planned"], now["executing"], now["aborted"]) == (4, 4, False, [])
    assert now["last"][0]["where"].startswith(address(FIRST, "trial"))


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (99, "99 s"), (130, "2 min"), (3_900, "1 h 05 min")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
