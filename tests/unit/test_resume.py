"""`run --resume`: what it cannot obey is refused, and a run can be given more repeats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic
from command_line import output
from test_runner import Silent, pretend

from dnsrig.cli import _resume
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import resume, runner
from dnsrig.experiment.trial_specs import order
from dnsrig.rundir import Manifest, read_json, trial_dir


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Three repeats of four variants; one trial is missing."""
    made = synthetic.build(tmp_path / "run")
    next(made.glob("trials/v02/03")).rename(made / "trials/v02/gone")
    return made


def of(directory: Path) -> Manifest:
    return read_json(directory / "manifest.json", Manifest)


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    return output(monkeypatch, capsys, "run", *arguments)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (["--set", "zones=[1]"], "--set has no effect", "dnsrig compare"),
        (["--scale", "quick"], "--scale has no effect", "another run with --scale"),
        (["--runs", "elsewhere"], "--runs has no effect", "leave --runs out"),
        (["--seed", "1"], "--seed has no effect", "that --repeats adds"),
        (["--max-trials", "5"], "--max-trials has no effect", "that --repeats adds"),
        (["--repeats", "2"], "the run already has 3", "more than 3"),
        (["--repeats", "3", "--seed", "1"], "--seed 1 has no effect", "add repeats"),
        (["--repeats", "300"], "1,200 trials", "--max-trials"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
    hint: str,
) -> None:
    monkeypatch.setattr(runner, "check_unchanged", lambda manifest: None)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    before = (directory / "manifest.json").read_bytes()
    for dry in ([], ["--dry-run"]):
        code, out, err = command(monkeypatch, capsys, "--resume", str(directory), *options, *dry)
        assert (code, out) == (2, "") and message in err and hint in err
    assert (directory / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("repeats", [None, 5])
def test_a_dry_run_shows_what_is_missing_and_writes_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repeats: int | None
) -> None:
    monkeypatch.setattr(runner, "execute", None)
    monkeypatch.setattr(runner, "check_unchanged", lambda manifest: None)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    more = ["--repeats", str(repeats), "--seed", "7"] if repeats else []
    code, out, _ = command(monkeypatch, capsys, "--resume", str(directory), "--dry-run", *more)
    label = next(variant.label for variant in of(directory).variants if variant.id == "v02")
    assert code == 0
    assert f"  1. {label} repeat 3" in out
    if repeats:
        assert "11 of 20 trials are finished; 9 would be executed" in out
        assert "repeats from 4 on: order from seed 7" in out and f"{label} repeat 5" in out
    else:
        assert "11 of 12 trials are finished; 1 would be executed" in out and "seed" not in out
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_a_dry_run_says_why_the_run_cannot_go_on(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(monkeypatch, capsys, "--resume", str(directory), "--dry-run")
    assert code == 1 and "would be executed" in out and "this run cannot be resumed" in err


def test_added_repeats_are_rounds_of_all_variants_after_those_that_were_there(directory: Path) -> None:
    before = of(directory)
    manifest = resume.extend(directory, 6, 11)
    assert manifest == of(directory)
    assert (manifest.repeats, manifest.order_seed) == (6, before.order_seed)
    assert [more.model_dump() for more in manifest.extensions] == [{"first_repeat": 4, "order_seed": 11}]
    assert manifest.order[:12] == before.order
    rounds = [manifest.order[start : start + 4] for start in range(12, 24, 4)]
    variants = [variant.id for variant in manifest.variants]
    for number, keys in enumerate(rounds, start=4):
        assert sorted(key.variant for key in keys) == variants and {key.repeat for key in keys} == {number}
    assert len({tuple(key.variant for key in keys) for keys in rounds}) > 1, "each round is shuffled anew"
    assert manifest.order[12:] == order(variants, 6, 11, first=4), "from the recorded seed"
    again = resume.extend(directory, 7, None)
    assert [more.first_repeat for more in again.extensions] == [4, 7]
    assert again.order[:24] == manifest.order
    assert resume.extend(directory, 7, None) == again, "nothing to add"


def test_added_repeats_are_executed_and_finished_trials_stay(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("trials/*/0?/*")
        if path.is_file()
    }
    manifest = resume.extend(directory, 4, 3)
    pretend(monkeypatch, tmp_path)
    progress = Silent()
    assert runner.execute(manifest, directory, progress) == 0
    assert progress.started == [("v02", 3), *((key.variant, key.repeat) for key in manifest.order[12:])]
    assert not runner.missing(manifest, directory)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in finished} == finished
    assert trial_dir(directory, "v00", 4).is_dir()


def test_a_manifest_is_extended_whole_or_not_at_all(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (directory / "manifest.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError):
            resume.extend(directory, 9, None)
    assert (directory / "manifest.json").read_bytes() == before
    with runner.cached.only_one(directory, ""), pytest.raises(DnsrigError, match="executing this run"):
        resume.extend(directory, 9, None)
    assert (directory / "manifest.json").read_bytes() == before


def test_a_run_of_an_earlier_version_is_extended_as_well(directory: Path) -> None:
    told = json.loads((directory / "manifest.json").read_text())
    del told["extensions"]
    (directory / "manifest.json").write_text(json.dumps(told))
    assert resume.extend(directory, 4, 1).repeats == 4
    with pytest.raises(UsageError):
        resume.extend(directory, 3, None)


def test_invalid_trials_are_reported_and_measured_again_where_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bind, knot = "bind@system", "knot@system"
    plan = synthetic.Plan(
        servers=[bind, knot], zones=[10], repeats=3, samples=False, outcomes={(bind, 10, 2): "invalid"}
    )
    run = synthetic.build(tmp_path / "run", plan)
    monkeypatch.setattr(runner, "check_unchanged", lambda manifest: None)
    resume = ["--resume", str(run), "--dry-run"]
    code, out, err = command(monkeypatch, capsys, *resume)
    assert code == 0 and "0 would be executed" in out and "1 trial is invalid: --redo-invalid" in err
    code, out, err = command(monkeypatch, capsys, *resume, "--redo-invalid")
    assert "5 of 6 trials are finished; 1 would be executed" in out and "repeat 2" in out and not err
    more = _resume.More(None, None, 1000, redo_invalid=True)
    manifest = _resume.prepare(of(run), run, more, runner.Local())
    (key,) = runner.missing(manifest, run)
    assert key.repeat == 2 and (trial_dir(run, key.variant, 2).with_name("02.invalid") / "trial.json").exists()
    pretend(monkeypatch, tmp_path)
    assert runner.execute(manifest, run, Silent()) == 0 and not runner.missing(manifest, run)


def test_redoing_needs_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(monkeypatch, capsys, "tour", "--redo-invalid", "--dry-run")
    assert code == 2 and "--resume RUN --redo-invalid" in err
