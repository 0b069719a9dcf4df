"""CPU profiles for speedscope: what is in them, and that speedscope itself reads them."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import synthetic

from dnsrig.report import export
from dnsrig.rundir import ProfileRecord, TrialRecord, read_json, trial_dir, write_json
from dnsrig.runs.run import Run

STACKS = {"named;main;sign": 2, "named;main;send": 1}
RELEASE = "speedscope@1.25.0"
CHROMIUM = shutil.which("chromium")


def exported(
    folder: Path, *, rate_per_s: float = 200.0, timed: bool = True, stacks: dict[str, int] | None = None
) -> Path:
    """A run of one trial, in which the observer has a profile as well."""
    plan = synthetic.Plan(servers=["bind@system"], zones=[100], repeats=1, stacks=STACKS if stacks is None else stacks)
    trial = trial_dir(synthetic.build(folder / "run", plan), "v00", 1)
    record = read_json(trial / "trial.json", TrialRecord)
    record.profiles["secondary"] = ProfileRecord(samples=3, rate_per_s=rate_per_s)
    write_json(trial / "trial.json", record)
    if timed:
        rows = {"time_ns": [30, 10, 20], "stack": pl.Series([0, 0, 1], dtype=pl.UInt32)}
        pl.DataFrame(rows).write_ipc_stream(trial / "profile-secondary.arrow")
    (trial / "profile-observer.folded").write_text("engine;probe;<img src=x>\u202e 4\n")
    run = Run.open(folder / "run")
    (path,) = export(run, "speedscope", folder)
    assert not list(run.failures)
    return path


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = len(found["shared"]["frames"])
    for profile in found["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < frames for sample in profile["samples"] for frame in sample)
    return found


def test_samples_are_in_the_order_in_which_they_were_taken(tmp_path: Path) -> None:
    found = read(exported(tmp_path))
    frames = [frame["name"] for frame in found["shared"]["frames"]]
    assert frames == ["named", "main", "sign", "send", "engine", "probe", "<img src=x>\\u202e"]
    assert found["profiles"] == [
        {
            "type": "sampled",
            "name": "secondary: bind 1.2.3 (system)",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": 15_000_000,
            "samples": [[0, 1, 2], [0, 1, 3], [0, 1, 2]],
            "weights": [5_000_000] * 3,
        },
        {
            "type": "sampled",
            "name": "observer",
            "unit": "none",
            "startValue": 0,
            "endValue": 4,
            "samples": [[4, 5, 6]],
            "weights": [4],
        },
    ]


def test_without_times_equal_stacks_are_one(tmp_path: Path) -> None:
    profile = read(exported(tmp_path, timed=False))["profiles"][0]
    assert (profile["samples"], profile["weights"]) == ([[0, 1, 2], [0, 1, 3]], [5_000_000, 10_000_000])


def test_a_file_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = (exported(tmp_path / name).read_text() for name in ("a", "b"))
    assert first == second


def test_a_trial_without_a_profile_has_no_file(tmp_path: Path) -> None:
    run = Run.open(synthetic.build(tmp_path / "run"))
    assert export(run, "speedscope", tmp_path) == []
    assert not list(run.failures)


def test_a_damaged_profile_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = exported(tmp_path)
    folded = trial_dir(tmp_path / "run", "v00", 1) / "profile-observer.folded"
    folded.write_text("engine;probe 3\nengine;wri")
    run = Run.open(tmp_path / "run")
    assert export(run, "speedscope", tmp_path) == [path]
    assert run.is_damaged
    assert read(path)["profiles"][1]["weights"] == [3]


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None or shutil.which("npm") is None, reason="needs chromium and npm")
def test_speedscope_reads_it(tmp_path: Path) -> None:
    """Its release draws a list of profiles with their weights, as it does when a person opens the file."""
    path = exported(tmp_path)
    subprocess.run(["npm", "pack", "--silent", RELEASE], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    subprocess.run(["tar", "-xzf", *tmp_path.glob("speedscope-*.tgz")], cwd=tmp_path, check=True)
    encoded = base64.b64encode(path.read_bytes()).decode()
    (tmp_path / "load.js").write_text(f"speedscope.loadFileFromBase64({json.dumps(path.name)}, {json.dumps(encoded)})")
    page = tmp_path / "package/dist/release/index.html"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    command = [str(CHROMIUM), *quiet, f"--user-data-dir={tmp_path / 'profile'}"]
    command.append(f"{page.as_uri()}#localProfilePath={tmp_path / 'load.js'}")
    drawn = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    rows = [re.sub(r"<[^>]*>", "|", row) for row in re.findall(r"<tr title=.*?</tr>", drawn)]
    assert [[cell for cell in row.split("|") if cell] for row in rows] == [
        ["1", "secondary: bind 1.2.3 (system)", "15.00ms"],
        ["2", "observer", "4"],
    ]
