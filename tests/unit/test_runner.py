"""The runner with trials that only pretend: order, resume, faults."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import synthetic

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.experiment import runner
from dnsrig.rundir import Manifest, TrialRecord, TrialSpec, read_json, trial_dir
from dnsrig.servers import sources

PRETEND = """
import json, pathlib, sys
spec, target = json.load(open(sys.argv[-2])), pathlib.Path(sys.argv[-1])
print(json.dumps({"event": "phase", "phase": "measure"}), flush=True)
if spec["repeat"] in FAIL:
    print("dnsrig: the moon is full", file=sys.stderr)
    sys.exit(1)
target.mkdir(parents=True)
record = {"spec": spec, "outcome": "done", "phases": [], "servers": {}, "instruments": {}}
(target / "trial.json").write_text(json.dumps(record))
"""


class Silent:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []
        self.reasons: list[str] = []
        self.events = 0

    def note(self, text: str) -> None: ...

    def trial_started(self, number: int, total: int, spec: TrialSpec) -> None:
        self.started.append((spec.variant.id, spec.repeat))

    def trial_event(self, event: dict[str, Any]) -> None:
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


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, fail: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    program = tmp_path / "pretend.py"
    program.write_text(PRETEND.replace("FAIL", repr(set(fail))))
    monkeypatch.setattr(runner, "TRIAL_COMMAND", [sys.executable, str(program)])


def test_everything_in_the_planned_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: tuple[Manifest, Path]
) -> None:
    manifest, directory = run
    pretend(monkeypatch, tmp_path)
    progress = Silent()
    assert runner.execute(manifest, directory, progress) == 0
    assert progress.started == [(key.variant, key.repeat) for key in manifest.order]
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
    assert progress.started == [(lost.variant, lost.repeat)]
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
    good = good.model_copy(update={"specs": {}, "engine_fingerprint": sources.fingerprint(paths.engine())})
    runner.check_unchanged(good)
    changed = json.loads(good.model_dump_json())
    for name, value in change.items():
        changed[name] = {**changed[name], **value} if isinstance(value, dict) else value
    with pytest.raises(DnsrigError, match=sentence) as caught:
        runner.check_unchanged(Manifest.model_validate(changed))
    assert "start anew" in caught.value.hint
