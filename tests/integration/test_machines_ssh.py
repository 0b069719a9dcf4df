"""Runs over machines that are reached over SSH: real trials, the loss of anything at any moment, what is refused."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import DNSRIG, left_behind, wait_until
from machine_runs import IMPATIENT, PRETEND_S, finished, manifest_of, preload, pretending_trials
from ssh_machines import PYTHON, VICTIMS, Lab, Machine, lab

NAMES = ("rack-1", "rack-2", "rack-3")


def run(machines: Lab, folder: Path, *words: str, program: list[str] = DNSRIG) -> subprocess.CompletedProcess[str]:
    command = [*machines.enter, *program, *words, "--on", machines.on]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)


def all_ended(machines: Lab) -> None:
    """Nothing runs on any machine, and no connection is open."""
    wait_until(lambda: not machines.processes(), 90)
    wait_until(lambda: not machines.connections())
    for machine in machines.machines.values():
        assert not machine.left_behind()


@pytest.mark.full
def test_real_trials_on_two_machines(tmp_path: Path, python: Path, nothing_left: None) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    settings = ("--set", "server=nsd@forky", "--set", "zones=20", "--repeats", "2")
    with lab(tmp_path / "lab", NAMES[:2], python) as machines:
        result = run(machines, tmp_path, "run", "tour", *settings)
        assert result.returncode == 0, result.stderr
        assert "distributed" not in result.stderr
        all_ended(machines)
        for machine in machines.machines.values():
            assert [*machine.cache.glob("roots/forky/nsd-*/usr/sbin/nsd")]
            assert not [*machine.cache.glob("machines/*/*")]
    assert len(finished(tmp_path)) == 2
    assert [machine.name for machine in manifest_of(tmp_path).machines] == ["rack-1", "rack-2"]
    assert len([*python.glob("*/dnsrig")]) == 1 and not left_behind()


@pytest.mark.full
def test_a_check_has_both_machines(tmp_path: Path, python: Path) -> None:
    with lab(tmp_path / "lab", NAMES[:2], python) as machines:
        checked = run(machines, tmp_path, "check")
        assert checked.returncode == 0, checked.stderr
        assert "machine rack-1" in checked.stdout and "machine rack-2" in checked.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("victim", "seed"),
    [(victim, seed) for seed, victim in enumerate(VICTIMS)],
)
def test_whatever_is_lost_the_run_is_completed(victim: str, seed: int, tmp_path: Path, python: Path) -> None:
    """Takes more than a minute: Python starts anew on each machine, two CPUs do the work of all machines, and a lease
    must end before the run goes on."""
    chance = random.Random(f"{victim} {seed}")
    environment = {
        "PRETEND_S": str(PRETEND_S),
        "DASK_DISTRIBUTED__WORKER__PRELOAD": str(preload(tmp_path)),
    }
    with lab(tmp_path / "lab", NAMES, python, environment) as machines:
        words = ["run", "echo-baseline", "--repeats", "6", "--on", str(machines.file)]
        with (tmp_path / "runner.log").open("w") as log:
            runner = subprocess.Popen(
                [*machines.enter, *IMPATIENT, *words], cwd=tmp_path, stdout=log, stderr=log, text=True
            )
        wait_until(lambda: bool(finished(tmp_path)) or runner.poll() is not None)
        time.sleep(chance.uniform(0, 4))
        before = finished(tmp_path)
        bring_back = machines.lose(victim, runner, chance)
        status = runner.wait(120)
        bring_back()
        all_ended(machines)
        assert not pretending_trials(tmp_path)
        told = (tmp_path / "runner.log").read_text()
        if victim in ("worker", "connection"):
            assert status == 0, told
        (directory,) = tmp_path.glob("runs/*/*")
        again = run(machines, tmp_path, "run", "--resume", str(directory), program=IMPATIENT)
        assert again.returncode == 0, again.stderr + told
        after, manifest = finished(tmp_path), manifest_of(tmp_path)
        assert len(before) < len(after) == len(manifest.order) and before.items() <= after.items()
        assert all(name in (directory / "report.html").read_text() for name in NAMES)
        for name, machine in machines.machines.items():
            measured = [path for path in after if (path.parent / "where").read_text() == str(machine.cache)]
            assert set(Counter(path.parent.parent.name for path in measured).values()) == {2}, name
            assert not [*machine.cache.glob("machines/*/*")]
        all_ended(machines)
    assert not pretending_trials(tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("victim", "seed"), [("runner", 0), ("network", 1)])
def test_whatever_is_lost_while_machines_are_made_ready(victim: str, seed: int, tmp_path: Path) -> None:
    """Nothing that is half brought is used, or stays."""
    python, chance = tmp_path / "python", random.Random(f"{victim} {seed}")
    python.mkdir()
    with lab(tmp_path / "lab", NAMES[:2], python) as machines:
        one = machines.machines["rack-2"]
        command = [*machines.enter, *DNSRIG, "check", "--on", str(machines.file)]
        with (tmp_path / "runner.log").open("w") as log:
            runner = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
        time.sleep(chance.uniform(0.5, 6))
        if victim == "runner":
            runner.kill()
        else:
            one.unplug()
        status = runner.wait(120)
        told = (tmp_path / "runner.log").read_text()
        assert victim == "runner" or status == 0 or "dnsrig: rack-2 cannot be reached: " in told, told
        one.plug()
        all_ended(machines)
        again = run(machines, tmp_path, "check")
        assert again.returncode == 0, again.stderr
        assert len([*python.iterdir()]) == 3 and not [*python.glob(".unfinished*")]


def unknown_key(machine: Machine) -> None:
    known = machine.lab.folder / "known_hosts"
    known.write_text("".join(line for line in known.open() if not line.startswith(machine.address)))


def refused_key(machine: Machine) -> None:
    machine.more = "AllowUsers somebody"
    start_again(machine)


def no_forwards(machine: Machine) -> None:
    machine.more = "AllowTcpForwarding no"
    start_again(machine)


def start_again(machine: Machine) -> None:
    machine.stop()
    machine.start()


def away(machine: Machine) -> None:
    machine.stop()


def full_disk(machine: Machine) -> None:
    (machine.cache / "python").unlink()
    machine.mount("-t", "tmpfs", "-o", "size=10m", "tmpfs", str(machine.cache))


def other_python(machine: Machine) -> None:
    program = machine.folder / "python"
    program.write_text("""#!/bin/sh\necho 'dnsrig: {"python": [3, 9]}'\ncat > /dev/null\n""")
    program.chmod(0o755)
    machine.lab.write(**{machine.name: f'python = "{program}"'})


def no_python(machine: Machine) -> None:
    machine.lab.write(**{machine.name: 'python = "python3.99"'})


def not_root(machine: Machine) -> None:
    """Without a map of users nobody is root, and still reads what root may."""
    machine.lab.write(**{machine.name: f'python = "unshare --user {PYTHON}"'})


REFUSED: Mapping[str, tuple[Callable[[Machine], None], str]] = {
    "unknown key": (unknown_key, "the host key of rack-2 is unknown"),
    "refused key": (refused_key, "rack-2 accepts none of the keys of root"),
    "away": (away, "rack-2 cannot be reached"),
    "no forwards": (no_forwards, "rack-2 forwards no ports"),
    "full disk": (full_disk, "rack-2: the disk is full"),
    "other Python": (other_python, "rack-2 has a different Python: 3.9, here 3."),
    "no Python": (no_python, "rack-2 cannot start python3.99"),
    "not root": (not_root, "on rack-2 dnsrig is not root"),
}


@pytest.mark.full
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_machine_lacks_is_told_and_the_others_are_let_go(case: str, tmp_path: Path, python: Path) -> None:
    spoil, told = REFUSED[case]
    with lab(tmp_path / "lab", NAMES[:2], python) as machines:
        spoil(machines.machines["rack-2"])
        result = run(machines, tmp_path, "check")
        assert result.returncode == 1
        assert told in result.stderr and "hint" in result.stderr and "Traceback" not in result.stderr, result.stderr
        wait_until(lambda: not machines.machines["rack-1"].processes() and not machines.connections())
