"""Benches do not rot: each one still works with the smallest sizes, and its output has figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benches"
RUNNER = FOLDER / "run.py"
BENCHES = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text() and path != RUNNER]
"""The other modules are what benches share."""
LIMIT_S = 240


def smoke(folder: Path, program: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    """Exit status, output and errors of a smoke run whose temporary files are in ``folder``."""
    done = subprocess.run(
        [sys.executable, program, "--smoke", *words], cwd=folder, env=os.environ | {"TMPDIR": str(folder)} | environment,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short name: Chromium makes a socket below it, and its path has 107 bytes at most
    (unix(7))."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.parametrize("bench", BENCHES, ids=lambda path: path.stem)
def test_a_smoke_run_prints_figures(bench: Path, folder: Path) -> None:
    """Up to a minute: some benches have to start machines or runs of their own, however small their sizes are."""
    status, output, errors = smoke(folder, bench)
    assert status == 0, output + errors
    first, *lines = output.splitlines()
    assert first.startswith("Smoke run"), output
    assert sum(bool(re.search(r"\d", line)) for line in lines) >= 2, output
    assert not re.search(r"\bnan\b", output), output


def test_each_bench_has_a_smoke_run() -> None:
    assert len(BENCHES) > 20
    assert [path.name for path in BENCHES if "from smoke import" not in path.read_text()] == []


def test_a_bench_that_fails_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    status, output, _ = smoke(
        tmp_path, RUNNER, "replay_prepare", "machines_disagree", DNSRIG_ENGINE="/nonexistent/dnsrig-engine"
    )
    assert status == 1, output
    assert re.search(r"^replay_prepare\.py +[\d.]+ s  FAILED, exit status 1$", output, re.MULTILINE), output
    assert re.search(r"^machines_disagree\.py +[\d.]+ s  passed$", output, re.MULTILINE), output
