"""Trials that are forked: what each gets, the status with which it ends, and what happens when a process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dnsrig.errors import DnsrigError
from dnsrig.experiment import forks
from dnsrig.experiment.forks import Forked, Forks

PROGRAM = Path(__file__).parents[1] / "pretend_forks.py"
WAITS = "import sys; print(os.getpid(), flush=True); sys.stdin.read(); print('over')"
LIMIT_S = 30.0

Start = Callable[[str], Forked]


@pytest.fixture
def pool() -> Iterator[Forks]:
    with Forks() as made:
        yield made


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pool: Forks) -> Start:
    """Starts a trial that executes these lines. The descriptors of its spec and its lock are two of /dev/null."""
    program = tmp_path / "program.py"
    monkeypatch.setattr(forks, "COMMAND", [sys.executable, str(PROGRAM), str(program)])

    def start(lines: str) -> Forked:
        program.write_text(f"import os\n{lines}")
        spec, lock = (os.open(os.devnull, os.O_RDONLY) for _ in range(2))
        try:
            return pool.start(spec, tmp_path / "target", lock)
        finally:
            os.close(spec)
            os.close(lock)

    return start


def process_of(pool: Forks) -> subprocess.Popen[bytes]:
    assert pool._popen is not None
    return pool._popen


def descriptors(pid: object) -> list[str]:
    return sorted(path.name for path in Path(f"/proc/{pid}/fd").iterdir())


def test_it_has_a_session_and_the_cpus_of_the_thread_that_asks_and_no_descriptor_but_its_own(start: Start) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        start("").wait(LIMIT_S)
        os.sched_setaffinity(0, {min(before)})
        trial = start(
            "print(os.getsid(0) == os.getpid(), os.sched_getaffinity(0))\n"
            "print([os.readlink(f'/dev/fd/{n}').split(':')[0] for n in sorted(map(int, os.listdir('/dev/fd'))) if os.path.exists(f'/dev/fd/{n}')])"
        )
    finally:
        os.sched_setaffinity(0, before)
    assert trial.stdout.read().splitlines() == [
        f"True {{{min(before)}}}",
        str([*("pipe",) * 3, *("/dev/null",) * 2]),
    ]


def test_its_arguments_name_the_descriptor_of_its_spec(start: Start, tmp_path: Path) -> None:
    trial = start("import sys; print(sys.argv[1:3], os.readlink(sys.argv[3]), sys.argv[4:])")
    assert trial.stdout.read() == f"['trial', '--until-eof'] /dev/null {[str(tmp_path / 'target')]}\n"


@pytest.mark.parametrize(
    ("lines", "status", "errors"),
    [
        ("", 0, []),
        ("raise SystemExit", 0, []),
        ("raise SystemExit(7)", 7, []),
        ("raise SystemExit('why')", 1, []),
        ("os.kill(os.getpid(), 9)", -9, []),
        ("1 / 0", 1, ["ZeroDivisionError: division by zero"]),
    ],
)
def test_how_it_ended(start: Start, lines: str, status: int, errors: list[str]) -> None:
    trial = start(lines)
    assert trial.wait(LIMIT_S) == status == trial.poll() == trial.returncode
    assert trial.stderr.read().splitlines()[-1:] == errors


def test_as_long_as_it_runs_it_has_no_status_and_a_signal_reaches_it(start: Start) -> None:
    trial = start(WAITS)
    trial.stdout.readline()
    assert trial.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        trial.wait(0.01)
    trial.send_signal(signal.SIGKILL)
    assert trial.wait(LIMIT_S) == -signal.SIGKILL
    trial.send_signal(signal.SIGTERM)
    trial.kill()


def test_many_leave_no_descriptor_and_no_process(start: Start, pool: Forks) -> None:
    start("").wait(LIMIT_S)
    before, process = descriptors("self"), process_of(pool)
    for _ in range(20):
        start("").wait(LIMIT_S)
    assert descriptors("self") == before
    assert Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text() == ""
    assert len(descriptors(process.pid)) <= 5, "standard input, output, errors, requests, and the last answer"
    assert process_of(pool) is process, "all are forked from one process"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_if_that_process_is_killed_the_trial_goes_on_and_the_next_one_is_forked_from_another(
    start: Start, pool: Forks, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    trial, killed = start(WAITS), process_of(pool)
    trial.stdout.readline()
    killed.send_signal(number)
    assert killed.wait(LIMIT_S) == -number
    assert capfd.readouterr().err == "", "a traceback would look like a fault of dnsrig"
    assert trial.poll() is None
    trial.stdin.close()
    assert trial.stdout.read() == "over\n" and trial.wait(LIMIT_S) == 1, "how it ended is not known"
    assert start("raise SystemExit(3)").wait(LIMIT_S) == 3
    assert process_of(pool) is not killed


def test_a_process_that_ends_at_once_is_an_error_and_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, start: Start, pool: Forks
) -> None:
    start("").wait(LIMIT_S)
    pool.__exit__()
    before = descriptors("self")
    monkeypatch.setattr(forks, "COMMAND", ["false"])
    with pytest.raises(DnsrigError, match="no trial can be started"):
        start("")
    assert descriptors("self") == before


def test_with_the_runner_ends_what_it_started(tmp_path: Path) -> None:
    """It is killed while a trial runs: the trial sees that its standard input ends, and then the process ends too."""
    program = tmp_path / "program.py"
    program.write_text(f"import os\n{WAITS}")
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER.format(command=[sys.executable, str(PROGRAM), str(program)])],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    with runner, runner.stdout:
        begun = [int(pid) for pid in runner.stdout.readline().split()]
        runner.kill()
    deadline = time.monotonic() + LIMIT_S
    while any(Path("/proc", str(pid)).exists() for pid in begun) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [pid for pid in begun if Path("/proc", str(pid)).exists()] == []


RUNNER = """
import os, time
from pathlib import Path
from dnsrig.experiment import forks
forks.COMMAND = {command}
with forks.Forks() as pool:
    trial = pool.start(os.open("/dev/null", 0), Path("/target"), os.open("/dev/null", 0))
    print(pool._popen.pid, trial.stdout.readline().strip(), flush=True)
    time.sleep(60)
"""
