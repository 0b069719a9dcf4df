"""Real servers in real network namespaces: needs root. Servers come from the cache, or are fetched once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import forked_trials
import others
import pytest

from dnsrig.errors import DnsrigError
from dnsrig.experiment import preparation
from dnsrig.lab import cgroup, ledger, uml
from dnsrig.rundir import TrialRecord, TrialSpec, read_json
from dnsrig.runs.trial import Trial

DNSRIG = [sys.executable, "-m", "dnsrig"]
TRIAL_LIMIT_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "integration" in Path(item.fspath).parts:
            item.add_marker(pytest.mark.root)
            if os.geteuid() != 0:
                item.add_marker(pytest.mark.skip(reason="makes network namespaces, and so needs root"))


def wait_until(condition: Callable[[], bool], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def own_ledgers() -> list[Path]:
    """Ledgers of the trials that this test started; others may run beside it."""
    return sorted(ledger.FOLDER.glob(f"{os.environ[ledger.TAG_START]}*.json"))


def left_behind() -> list[str]:
    """What this test's trials would have left on this machine: namespaces, cgroups, mounts, ledgers."""
    start = os.environ[ledger.TAG_START]
    name = f"{ledger.PREFIX}{start}"
    found = [path.name for path in Path("/run/netns").glob(f"{name}*")]
    for tree in cgroup.hierarchies():
        with contextlib.suppress(
            FileNotFoundError
        ):  # nobody has a cgroup there, or the last one removed the parent just now
            found += [str(path) for path in (tree.mount / cgroup.PARENT).glob(f"{start}*") if path.is_dir()]
    found += [str(path) for path in ledger.MEMORY.glob(f"{name}*")]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if name in line]
    return found + [str(path) for path in own_ledgers()]


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test leaves the machine as it found it; the tags of its trials begin with letters of its own: its worker's,
    so that no other test that runs now has them by chance, and two at random."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    start = [ledger.TAG_LETTERS[worker], *random.SystemRandom().choices(ledger.TAG_LETTERS, k=2)]
    monkeypatch.setenv(ledger.TAG_START, "".join(start))
    yield
    if os.geteuid() == 0:
        assert left_behind() == []


def specs(experiment: str, *settings: str) -> list[TrialSpec]:
    """The specs of all variants of ``experiment`` with ``settings``."""
    manifest = preparation.prepare(preparation.Request(experiment, settings=list(settings)), print)
    return [spec.model_copy(update={"repeat": 1}) for spec in manifest.specs.values()]


@pytest.fixture(scope="session")
def kernel() -> uml.Kernel:
    """That of User-mode Linux."""
    if why := uml.available():
        pytest.skip(why)
    try:
        return uml.install()
    except DnsrigError as error:
        pytest.skip(f"the package cannot be fetched: {error.message}")


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is brought to machines, once for all workers of this session."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "python"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the trials of this session lie, for all of its workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trials"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def starter() -> Iterator[forked_trials.Starter]:
    made = forked_trials.Starter()
    yield made
    made.end()


@pytest.fixture
def measure(trials: Path, starter: forked_trials.Starter) -> Callable[..., Trial]:
    """The trial of the one variant that ``settings`` leave of an experiment, executed by `dnsrig trial`.

    Tests share it: a spec is executed once a session. If one test asks for it twice, it is executed twice.
    ``meanwhile`` names what a test does to this machine while the trial runs: the trial is then not shared, and its
    process is a child of the test's process.
    """
    asked: Counter[str] = Counter()

    def execute(*settings: str, experiment: str = "tour", meanwhile: str = "") -> Trial:
        (spec,) = specs(experiment, *settings)
        text = spec.model_copy(update={"run": "tests"}).model_dump_json()
        key = sha256(f"{text} {meanwhile}".encode()).hexdigest()[:16]
        name = f"{key}-{asked[key]}"
        asked[key] += 1
        directory = trials / name
        with (trials / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not directory.exists():
                run = as_child if meanwhile else partial(forked, starter)
                anew = partial(execute_trial, text, directory, run)
                anew() if meanwhile else others.until_in_time(anew)
        trial = Trial(directory, read_json(directory / "trial.json", TrialRecord))
        if not meanwhile and others.was_late(trial.record):
            others.skip_if_excused((), share_of_others(trial), trial.record.reason)
        return trial

    return execute


def execute_trial(spec: str, directory: Path, run: Callable[[Path, Path], float]) -> TrialRecord:
    """Execute the trial anew, and write next to it the CPU time that others took meanwhile."""
    shutil.rmtree(directory, ignore_errors=True)
    spec_file = directory.with_suffix(".spec")
    spec_file.write_text(spec)
    before = others.Moment.now()
    cpu_s = run(spec_file, directory)
    after = others.Moment.now()
    share = others.share_of_others(before, replace(after, own_s=after.own_s + cpu_s))
    directory.with_suffix(".others").write_text(str(share))
    return read_json(directory / "trial.json", TrialRecord)


def as_child(spec_file: Path, directory: Path) -> float:
    """Run `dnsrig trial` as a child of this process; the kernel adds its CPU time to the one of this process."""
    command = [*DNSRIG, "trial", str(spec_file), str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=TRIAL_LIMIT_S)
    return 0.0


def forked(starter: forked_trials.Starter, spec_file: Path, directory: Path) -> float:
    """Run `dnsrig trial` in a fork of ``starter``, and return its CPU time."""
    errors = directory.with_suffix(".errors")
    ended = starter.run(["trial", str(spec_file), str(directory)], errors=errors, limit_s=TRIAL_LIMIT_S)
    assert ended.status == 0, errors.read_text()
    return ended.cpu_s


def share_of_others(trial: Trial) -> float:
    """What others took while ``trial`` ran, as a share of one CPU's time."""
    return float(trial.directory.with_suffix(".others").read_text())
