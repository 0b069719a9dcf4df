"""The runner with trials that only pretend: order, resume, faults."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic

from dnsrig import cached, interruption, paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import children, forks, runner, trial
from dnsrig.rundir import Manifest, TrialRecord, TrialSpec, read_json, trial_dir
from dnsrig.servers import sources

FORKS = Path(__file__).parents[1] / "pretend_forks.py"
PRETEND = """
import json, os, pathlib, sys, time
spec, target = json.load(open(sys.argv[-2])), pathlib.Path(sys.argv[-1])
print(json.dumps({"event": "phase", "phase": "measure"}), flush=True)
if spec["repeat"] in FAIL:
    print("dnsrig: the moon is full", file=sys.stderr)
    sys.exit(1)
if MEET:
    begun = pathlib.Path(__file__).with_name("begun")
    with begun.open("a") as file:
        file.write(f"{os.sched_getaffinity(0)}\\n")
    deadline = time.monotonic() + 20
    while len(begun.read_text().splitlines()) < MEET:
        assert time.monotonic() < deadline, "nobody else came"
        time.sleep(0.01)
target.mkdir(parents=True)
record = {"spec": spec, "outcome": "done", "phases": [], "servers": {}, "instruments": {}}
(target / "trial.json").write_text(json.dumps(record))
"""


class Silent:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []
        self.numbers: list[int] = []
        self.reasons: list[str] = []
        self.notes: list[str] = []
        self.events = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self.started.append((spec.variant.id, spec.repeat))
        self.numbers.append(number)

    def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
        self.events += 1

    def trial_ended(self, spec: TrialSpec, record: TrialRecord | None, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture
def run(tmp_path: Path) -> tuple[Manifest, Path]:
    """A plan of which nothing has been executed."""
    directory = synthetic.build(tmp_path / "run")
    for path in directory.glob("trials/*/*/trial.json"):
        path.rename(path.with_name("gone"))
        path.parent.rename(path.parent.with_name(path.parent.name + ".gone"))
    return read_json(directory / "manifest.json", Manifest), directory


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, fail: set[int] = frozenset(), meet: int = 0) -> None:  # type: ignore[assignment]
    """``meet``: so many must have begun before any ends."""
    program = tmp_path / "pretend.py"
    program.write_text(PRETEND.replace("FAIL", repr(set(fail))).replace("MEET", str(meet)))
    monkeypatch.setattr(forks, "COMMAND", [sys.executable, str(FORKS), str(program)])


def test_everything_in_the_planned_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    pretend(monkeypatch, tmp_path)
    progress = Silent()
    assert runner.execute(manifest, directory, progress) == 0
    assert progress.started == [(key.variant, key.repeat) for key in manifest.order]
    assert progress.numbers == [*range(1, 1 + len(manifest.order))]
    assert progress.events == len(manifest.order)
    assert runner.missing(manifest, directory) == []


def test_resume_does_what_is_missing_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    pretend(monkeypatch, tmp_path)
    runner.execute(manifest, directory, Silent())
    lost = manifest.order[3]
    (trial_dir(directory, lost.variant, lost.repeat) / "trial.json").unlink()
    trial_dir(directory, lost.variant, lost.repeat).rmdir()
    times = {path: path.stat().st_mtime_ns for path in directory.rglob("trial.json")}
    progress = Silent()
    runner.execute(manifest, directory, progress)
    assert progress.started == [(lost.variant, lost.repeat)] and progress.numbers == [len(manifest.order)]
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_faults_are_told_and_do_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    first = manifest.order[0].repeat
    pretend(monkeypatch, tmp_path, fail={first})
    monkeypatch.setattr(runner, "ERRORS_IN_A_ROW", 100)
    progress = Silent()
    errors = runner.execute(manifest, directory, progress)
    assert errors == sum(key.repeat == first for key in manifest.order)
    assert progress.reasons[0] == "the moon is full"
    assert len(runner.missing(manifest, directory)) == errors


def test_faults_in_a_row_stop_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    pretend(monkeypatch, tmp_path, fail={key.repeat for key in manifest.order})
    progress = Silent()
    with pytest.raises(DnsrigError, match="3 trials in a row failed: the moon is full") as caught:
        runner.execute(manifest, directory, progress)
    assert "--resume" in caught.value.hint
    assert len(progress.started) == runner.ERRORS_IN_A_ROW


def test_what_an_interrupted_trial_left_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    key = manifest.order[0]
    target = trial_dir(directory, key.variant, key.repeat)
    running = target.with_name(target.name + ".running")
    (running / "state").mkdir(parents=True)
    (running / "note").write_text("of the trial that died")
    pretend(monkeypatch, tmp_path)
    runner.execute(manifest, directory, Silent())
    assert (target.with_name(target.name + ".aborted") / "note").exists()
    assert not running.exists()


def test_two_cannot_execute_one_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    pretend(monkeypatch, tmp_path)

    class Second(Silent):
        def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
            with pytest.raises(DnsrigError, match="executing this run already"):
                runner.execute(manifest, directory, Silent())
            super().trial_started(number, total, spec)

    progress = Second()
    runner.execute(manifest, directory, progress)
    assert progress.started


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"conditions": {"boot_id": "another"}}, "restarted"),
        ({"dnsrig_version": "9.9.9"}, "dnsrig was 9.9.9"),
        ({"engine_fingerprint": "0123"}, "the engine was built anew"),
    ],
)
def test_resume_refuses_what_would_mix_two_machines(
    run: tuple[Manifest, Path], change: dict[str, Any], sentence: str
) -> None:
    manifest, _ = run
    now = runner.conditions.snapshot()
    good = manifest.model_copy(update={"conditions": now, "dnsrig_version": runner.dnsrig.__version__, "servers": {}})
    good = good.model_copy(update={"specs": {}, "variants": [], "order": []})
    good = good.model_copy(update={"engine_fingerprint": sources.fingerprint(paths.engine())})
    runner.check_unchanged(good)
    changed = json.loads(good.model_dump_json())
    for name, value in change.items():
        changed[name] = {**changed[name], **value} if isinstance(value, dict) else value
    with pytest.raises(DnsrigError, match=sentence) as caught:
        runner.check_unchanged(Manifest.model_validate(changed))
    assert "start a new run" in caught.value.hint


def under_uml(manifest: Manifest) -> Manifest:
    specs = {name: spec.model_copy(update={"kernel": "uml"}) for name, spec in manifest.specs.items()}
    return manifest.model_copy(update={"specs": specs})


def test_two_at_once_have_a_cpu_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = under_uml(run[0]), run[1]
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one CPU")
    pretend(monkeypatch, tmp_path, meet=2)
    progress = Silent()
    assert runner.execute(manifest, directory, progress, at_once=2) == 0
    assert progress.started == [(key.variant, key.repeat) for key in manifest.order]
    assert runner.missing(manifest, directory) == []
    begun = (tmp_path / "begun").read_text().splitlines()
    assert set(begun[:2]) == {str({cpu}) for cpu in mine[-2:]}, "both at once, on two CPUs"
    assert sorted(os.sched_getaffinity(0)) == mine


def test_at_once_is_for_trials_with_a_kernel_and_a_cpu_of_their_own(run: tuple[Manifest, Path]) -> None:
    manifest, directory = run
    with pytest.raises(UsageError, match="would disturb each other"):
        runner.execute(manifest, directory, Silent(), at_once=2)
    with pytest.raises(UsageError, match="its own CPU"):
        runner.execute(under_uml(manifest), directory, Silent(), at_once=10_000)


def test_an_interrupt_ends_all_that_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = under_uml(run[0]), run[1]
    pretend(monkeypatch, tmp_path, meet=10_000)

    class Interrupted(Silent):
        def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.execute(manifest, directory, Interrupted(), at_once=min(2, len(os.sched_getaffinity(0))))
    assert not list(directory.glob("trials/*/*/trial.json"))
    assert not [line for line in processes() if str(tmp_path / "pretend.py") in line]


SILENT = """
import os, signal, sys, time
if "PID" in os.environ:
    open(os.environ["PID"], "w").write(str(os.getpid()))
signal.sigwait({signal.SIGTERM})
"""


def silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Trials that print nothing until they have to end. Returns the file in which each writes its process."""
    program, pid = tmp_path / "silent.py", tmp_path / "pid"
    program.write_text("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})" + SILENT)
    monkeypatch.setattr(forks, "COMMAND", [sys.executable, str(FORKS), str(program)])
    monkeypatch.setenv("PID", str(pid))
    return pid


@contextlib.contextmanager
def meanwhile(pid: Path, act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act`` with the process of the trial when there is one. That must end what is inside."""
    over, unheard = threading.Event(), []

    def go() -> None:
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        act(int(pid.read_text()))
        if not over.wait(20):
            unheard.append("nothing ended, so the trial was killed")
            os.kill(int(pid.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=go)
    thread.start()
    yield
    over.set()
    thread.join()
    assert unheard == []


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_each_signal_ends_a_run_whose_trial_is_silent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path], number: signal.Signals
) -> None:
    pid, progress = silent(monkeypatch, tmp_path), Silent()
    with meanwhile(pid, lambda trial: os.kill(os.getpid(), number)), pytest.raises(KeyboardInterrupt) as raised:
        runner.execute(*run, progress)
    assert str(raised.value) == number.name
    assert not Path("/proc", pid.read_text()).exists()
    assert ["interrupted" in note for note in progress.notes] == [True]


def test_a_signal_while_a_trial_starts_ends_that_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    pid = silent(monkeypatch, tmp_path)

    class Starting(children.Child):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            while not (pid.exists() and pid.read_text()):
                time.sleep(0.01)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(runner, "Child", Starting)
    with pytest.raises(KeyboardInterrupt):
        runner.execute(*run, Silent())
    assert not Path("/proc", pid.read_text()).exists()


def test_a_trial_that_is_stopped_ends_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    pid = silent(monkeypatch, tmp_path)

    def stop_it(trial: int) -> None:
        os.kill(trial, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(children.removal, "clean", lambda: pytest.fail("it had to be killed"))
    with meanwhile(pid, stop_it), pytest.raises(KeyboardInterrupt):
        runner.execute(*run, Silent())


def test_what_a_killed_trial_made_is_removed_and_the_signal_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    pid, progress, cleaned = silent(monkeypatch, tmp_path), Silent(), []
    monkeypatch.setattr(children.removal, "clean", lambda: cleaned.append(True))
    one = manifest.model_copy(update={"order": manifest.order[:1]})
    with meanwhile(pid, lambda trial: os.kill(trial, signal.SIGKILL)):
        assert runner.execute(one, directory, progress) == 1
    assert progress.reasons == ["its process was ended by SIGKILL"] and cleaned == [True]


def test_a_spec_on_its_way_to_a_trial_has_no_file_that_a_kill_would_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    pretend(monkeypatch, tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    seen: list[str] = []

    class Looking(Silent):
        def trial_event(self, spec: TrialSpec, event: dict[str, Any]) -> None:
            seen.extend(path.name for path in temporary.iterdir())

    assert runner.execute(*run, Looking()) == 0 and seen == []


def test_the_run_is_its_trials_as_long_as_one_lives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    """A runner that dies leaves a trial that removes what it made, in the run's folder."""
    pid, held = silent(monkeypatch, tmp_path), []

    def look(trial: int) -> None:
        held.append(
            (run[1] / ".lock").stat().st_ino in {path.stat().st_ino for path in Path(f"/proc/{trial}/fd").iterdir()}
        )
        os.kill(trial, signal.SIGTERM)

    one = run[0].model_copy(update={"order": run[0].order[:1]})
    with meanwhile(pid, look):
        runner.execute(one, run[1], Silent())
    assert held == [True]


def processes() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_a_finished_trial_is_never_overwritten(tmp_path: Path) -> None:
    with pytest.raises(DnsrigError, match="already exists") as raised:
        trial.check_new(tmp_path)
    assert "never overwritten" in raised.value.hint


def test_a_trial_that_is_executed_is_not_set_aside(tmp_path: Path) -> None:
    working = tmp_path / "01.running"
    working.mkdir()
    with cached.held(working, ""), pytest.raises(DnsrigError, match="another process is executing this trial"):
        trial.set_aside(working)
    assert [path.name for path in tmp_path.iterdir()] == ["01.running"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_trial_that_ends_leaves_the_folder_of_its_successor_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: bool
) -> None:
    """The folder of the old trial was set aside, by another dnsrig, and a new trial has made one of that name."""

    def executed(spec: TrialSpec, working: Path, report: object) -> None:
        working.rename(tmp_path / "01.aborted")
        working.mkdir()
        (working / "of the new one").touch()
        if fails:
            raise interruption.Interrupted("SIGTERM")

    monkeypatch.setattr(trial, "_execute", executed)
    monkeypatch.setattr(trial, "_conclude", lambda record, working: None)
    with pytest.raises((KeyboardInterrupt, DnsrigError)):
        trial.run_trial(None, tmp_path / "01", lambda event: None)  # type: ignore[arg-type]
    assert (tmp_path / "01.running/of the new one").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["01.aborted", "01.running"]
