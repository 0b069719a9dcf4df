"""Runs over the machines of a Dask cluster: real trials, and the loss of anything at any moment."""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import DNSRIG, left_behind, wait_until
from dask_cluster import VICTIMS, Cluster
from machine_runs import IMPATIENT, LEASE_S, PRETEND_S, finished, manifest_of, preload, pretending_trials
from suites import quick

NAMES = ("rack-1", "rack-2", "rack-3")


@contextlib.contextmanager
def cluster(folder: Path, names: Sequence[str], *, pretending: bool) -> Iterator[Cluster]:
    made = Cluster(folder, names, preload(folder) if pretending else None)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.full
def test_real_trials_on_two_machines(tmp_path: Path, nothing_left: None) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    settings = ("--set", "server=nsd@forky", "--set", "zones=20", "--repeats", "2")
    with cluster(tmp_path, NAMES[:2], pretending=False) as machines:
        command = [*DNSRIG, "run", "tour", *settings, "--on", machines.on]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert len(finished(tmp_path)) == 2
    assert [machine.name for machine in manifest_of(tmp_path).machines] == ["rack-1", "rack-2"]
    for name in NAMES[:2]:
        assert [*machines.cache(name).glob("roots/forky/nsd-*/usr/sbin/nsd")]
        assert not [*machines.cache(name).glob("machines/*/*")]
    assert not left_behind()


@pytest.mark.parametrize(
    ("victim", "seed"),
    quick([("worker", 0), *((victim, seed) for seed, victim in enumerate(VICTIMS, start=1))], ("worker", 0)),
)
def test_whatever_is_lost_the_run_is_completed(
    victim: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 0 has two machines, which take less time to start, and the others have three.

    Takes more than 30 s: each process of the cluster imports everything, and a lease must end before the run goes on.
    """
    chance, names = random.Random(f"{victim} {seed}"), NAMES if seed else NAMES[:2]
    monkeypatch.setenv("PRETEND_S", str(PRETEND_S))
    with cluster(tmp_path, names, pretending=True) as machines:
        words = ["run", "echo-baseline", "--repeats", str(2 * len(names)), "--on", machines.on]
        with (tmp_path / "runner.log").open("w") as log:
            runner = subprocess.Popen([*IMPATIENT, *words], cwd=tmp_path, stdout=log, stderr=log, text=True)
        wait_until(lambda: bool(finished(tmp_path)) or runner.poll() is not None)
        time.sleep(chance.uniform(0, 4))
        before = finished(tmp_path)
        bring_back = machines.lose(victim, runner, chance)
        runner.wait(120)
        bring_back()
        (directory,) = tmp_path.glob("runs/*/*")
        wait_until(lambda: not pretending_trials(tmp_path), LEASE_S + 20)
        again = subprocess.run(
            [*IMPATIENT, "run", "--resume", str(directory), "--on", machines.on],
            cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert again.returncode == 0, again.stderr + (tmp_path / "runner.log").read_text()
    after, manifest = finished(tmp_path), manifest_of(tmp_path)
    assert len(before) < len(after) == len(manifest.order) and before.items() <= after.items()
    for machine in manifest.machines:
        told = [path for path in after if (path.parent / "where").read_text() == str(machines.cache(machine.name))]
        assert set(Counter(path.parent.parent.name for path in told).values()) == {2}
        assert not [*machines.cache(machine.name).glob("machines/*/*")]
    assert not pretending_trials(tmp_path)
