"""However a trial ends, nothing stays behind, nothing finished is lost, and what others made is left alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import DNSRIG, left_behind, own_ledgers, specs, wait_until

from dnsrig.lab import ledger
from dnsrig.rundir import TrialRecord, read_json
from dnsrig.runs.trial import Trial

SLOW = ("--set", "server=bind@forky", "--set", "zones=300")
"""About 15 s: BIND's default of 20 SOA queries a second."""
IN_MEMORY = ("--set", "storage=memory")


@pytest.fixture
def somebody_elses(nothing_left: None) -> Iterator[str]:
    """A namespace with a name much like ours."""
    name = f"dnsrigger-{os.environ[ledger.TAG_START]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield name
    assert Path("/run/netns", name).exists()
    subprocess.run(["ip", "netns", "del", name], check=True)


def secondary_runs(runs: Path) -> bool:
    return any(runs.glob("**/*.running/servers/secondary/exec.json"))


def start_run(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*DNSRIG, "run", "tour", *arguments], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: secondary_runs(folder / "runs"))
    return process


def trials(folder: Path) -> list[Path]:
    return sorted(folder.glob("runs/*/*/trials/*/*/trial.json"))


@pytest.mark.full
def test_kill_the_rig_and_resume(tmp_path: Path, somebody_elses: str) -> None:
    first = start_run(tmp_path, "--set", 'server=["nsd@forky","bind@forky"]', "--set", "zones=100", "--repeats", "1")
    wait_until(lambda: len(trials(tmp_path)) >= 1 and secondary_runs(tmp_path / "runs"))
    first.kill()
    first.communicate()
    before = {path: path.stat().st_mtime_ns for path in trials(tmp_path)}
    assert len(before) == 1
    (run,) = tmp_path.glob("runs/*/*")
    # The trial of the first may still remove what it made.
    subprocess.run([*DNSRIG, "run", "--resume", str(run)], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert len(trials(tmp_path)) == 2
    assert {path: path.stat().st_mtime_ns for path in before} == before, "finished trials are not touched"


@pytest.mark.alone
def test_kill_the_trial_too_and_clean(tmp_path: Path, somebody_elses: str) -> None:
    rig = start_run(tmp_path, *SLOW, *IN_MEMORY, "--repeats", "1")
    pids = [json.loads(path.read_text())["pid"] for path in own_ledgers()]
    rig.kill()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    rig.communicate()
    left = left_behind()
    assert any("netns" in what or what.startswith("dnsrig-") for what in left), "a killed trial removes nothing itself"
    assert any(what.startswith("/dev/shm/") for what in left), "nor what its servers stored"
    output = subprocess.run([*DNSRIG, "clean"], check=True, capture_output=True, text=True).stdout
    assert "removed what trial" in output
    assert left_behind() == []


@pytest.mark.parametrize(
    ("storage", "number"),
    [
        pytest.param((), signal.SIGINT, marks=pytest.mark.full, id="disk"),
        pytest.param(IN_MEMORY, signal.SIGINT, id="memory"),
        *(
            pytest.param((), number, marks=pytest.mark.full, id=number.name)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        ),
    ],
)
def test_interrupt(tmp_path: Path, storage: tuple[str, ...], number: signal.Signals) -> None:
    rig = start_run(tmp_path, *SLOW, *storage, "--repeats", "1")
    rig.send_signal(number)
    _, errors = rig.communicate(timeout=60)
    assert rig.returncode == 130
    assert "--resume" in errors
    assert left_behind() == []


@pytest.mark.full
def test_server_that_dies_is_a_result(tmp_path: Path) -> None:
    (spec,) = specs("tour", "server=bind@forky", "zones=300")
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    trial = subprocess.Popen([*DNSRIG, "trial", "spec.json", "trial"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    wait_until((tmp_path / "trial.running/servers/secondary/exec.json").exists)
    time.sleep(1)
    for path in own_ledgers():
        for folder in json.loads(path.read_text())["cgroups"]:
            if folder.endswith("/secondary"):
                for pid in Path(folder, "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
    trial.communicate(timeout=60)
    assert trial.returncode == 0
    ended = Trial(tmp_path / "trial", read_json(tmp_path / "trial/trial.json", TrialRecord))
    assert ended.record.outcome == "server-failed"
    assert "on host secondary was ended by SIGKILL" in ended.record.reason
    assert ended.metrics["transfer_time_s"] is None


def trial_in_progress(folder: Path) -> subprocess.Popen[str]:
    """A trial whose secondary runs."""
    (spec,) = specs("tour", "server=bind@forky", "zones=300")
    (folder / "spec.json").write_text(spec.model_dump_json())
    trial = subprocess.Popen([*DNSRIG, "trial", "spec.json", "trial"], cwd=folder, stderr=subprocess.PIPE, text=True)
    wait_until((folder / "trial.running/servers/secondary/exec.json").exists)
    return trial


def kill_watch(trial: subprocess.Popen[str], folder: Path) -> None:
    (made,) = map(json.loads, (path.read_text() for path in own_ledgers()))
    (observer, *_) = (Path(cgroup) for cgroup in made["cgroups"] if cgroup.endswith("/observer"))
    for pid in (observer / "cgroup.procs").read_text().split():
        if b"\0watch\0" in Path("/proc", pid, "cmdline").read_bytes():
            os.kill(int(pid), signal.SIGTERM)


def stop_for_a_while(trial: subprocess.Popen[str], folder: Path) -> None:
    trial.send_signal(signal.SIGSTOP)
    time.sleep(2)
    trial.send_signal(signal.SIGCONT)


@pytest.mark.full
@pytest.mark.parametrize(
    ("happens", "sentence"),
    [(kill_watch, "the instrument watch exited"), (stop_for_a_while, "was stopped for")],
)
def test_a_fault_of_the_machine_is_no_result(
    tmp_path: Path, happens: Callable[[subprocess.Popen[str], Path], None], sentence: str
) -> None:
    trial = trial_in_progress(tmp_path)
    happens(trial, tmp_path)
    _, errors = trial.communicate(timeout=60)
    assert trial.returncode == 1 and sentence in errors
    assert (tmp_path / "trial.aborted").exists() and not (tmp_path / "trial").exists()


@pytest.mark.full
def test_full_disk(tmp_path: Path) -> None:
    (spec,) = specs("tour", "server=nsd@forky", "zones=100")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(small)], check=True)
    try:
        (tmp_path / "spec.json").write_text(spec.model_dump_json())
        result = subprocess.run(
            [*DNSRIG, "trial", str(tmp_path / "spec.json"), str(small / "trial")],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 1
        assert not (small / "trial").exists()
        assert "disk is full" in result.stderr or "No space left" in result.stderr
        run = subprocess.run(
            [*DNSRIG, "run", "tour", "--runs", str(small)], capture_output=True, text=True, check=False, timeout=120
        )
        assert run.returncode == 1
        assert "disk is nearly full" in run.stderr
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.full
def test_finished_trial_is_never_overwritten(tmp_path: Path) -> None:
    (spec,) = specs("tour", "server=nsd@forky", "zones=100")
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    (tmp_path / "trial").mkdir()
    result = subprocess.run(
        [*DNSRIG, "trial", "spec.json", "trial"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "never overwritten" in result.stderr


@pytest.mark.full
def test_interrupt_during_removal(tmp_path: Path) -> None:
    """Signals that come while everything is being removed do not stop it."""
    (spec,) = specs("tour", "server=nsd@forky", "zones=100", "options.drain_s=0.0")
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    trial = subprocess.Popen([*DNSRIG, "trial", "spec.json", "trial"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert trial.stdout is not None
    for line in trial.stdout:
        if json.loads(line).get("phase") == "drain":
            break
    while trial.poll() is None:
        trial.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    trial.communicate()
    assert left_behind() == []
