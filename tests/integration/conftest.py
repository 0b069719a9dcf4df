"""Real servers in real network namespaces: needs root. Servers come from the cache, or are fetched once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dnsrig.analysis.read import Trial
from dnsrig.experiment import runner
from dnsrig.lab import cgroup, ledger
from dnsrig.rundir import TrialRecord, TrialSpec, read_json

DNSRIG = [sys.executable, "-m", "dnsrig"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "integration" in Path(item.fspath).parts:
            item.add_marker(pytest.mark.root)
            if os.geteuid() != 0:
                item.add_marker(pytest.mark.skip(reason="makes network namespaces, and so needs root"))


def own_ledgers() -> list[Path]:
    """Ledgers of the trials that this test started; others may run beside it."""
    return sorted(ledger.FOLDER.glob(f"{os.environ[ledger.TAG_START]}*.json"))


def left_behind() -> list[str]:
    """What this test's trials would have left on this machine: namespaces, cgroups, mounts, ledgers."""
    start = os.environ[ledger.TAG_START]
    name = f"{ledger.PREFIX}{start}"
    found = [path.name for path in Path("/run/netns").glob(f"{name}*")]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{cgroup.PARENT}/{start}*")]
    found += [str(path) for path in ledger.MEMORY.glob(f"{name}*")]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if name in line]
    return found + [str(path) for path in own_ledgers()]


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test leaves the machine as it found it; the tags of its trials begin with letters of its own."""
    monkeypatch.setenv(ledger.TAG_START, "".join(random.SystemRandom().choices(ledger.TAG_LETTERS, k=3)))
    yield
    if os.geteuid() == 0:
        assert left_behind() == []


def specs(experiment: str, *settings: str) -> list[TrialSpec]:
    """The specs of all variants of ``experiment`` with ``settings``."""
    manifest = runner.prepare(runner.Request(experiment, settings=list(settings)), print)
    return [spec.model_copy(update={"repeat": 1}) for spec in manifest.specs.values()]


@pytest.fixture
def measure(tmp_path: Path) -> Callable[..., Trial]:
    """Execute the one variant that ``settings`` leave of an experiment, by `dnsrig trial`, and read the result."""

    def execute(*settings: str, experiment: str = "tour") -> Trial:
        (spec,) = specs(experiment, *settings)
        spec_file, directory = tmp_path / "spec.json", tmp_path / f"trial-{len(list(tmp_path.iterdir()))}"
        spec_file.write_text(spec.model_dump_json())
        subprocess.run(
            [*DNSRIG, "trial", str(spec_file), str(directory)], check=True, stdout=subprocess.PIPE, timeout=120
        )
        return Trial(directory, read_json(directory / "trial.json", TrialRecord))

    return execute
