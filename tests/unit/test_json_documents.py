"""`--json`: one document on standard output, with the keys that docs/reference/json.md lists."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import synthetic
from command_line import output
from history_data import measured
from test_exit_status import Nothing, of_two_servers
from trial_data import clean_trial

from dnsrig.cli import _console
from dnsrig.cli._app import complain
from dnsrig.cli._progress import watching
from dnsrig.lab import check, removal
from dnsrig.lab.disturbances import Remark

pytestmark = pytest.mark.usefixtures("undrawn")
PAGE = Path(__file__).parents[2] / "docs/reference/json.md"


def section(heading: str) -> str:
    return PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def documented(heading: str) -> set[str]:
    """The keys in the first column of the tables below a heading."""
    rows = re.findall(r"^\| (`.*?) \|", section(heading), re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, dict[str, Any], str]:
    code, out, err = output(monkeypatch, capsys, *words, "--json")
    return code, json.loads(out), err


def test_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = document(monkeypatch, capsys, "list")
    assert (code, err) == (0, "") and set(found) == documented("list")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("list"), re.MULTILINE))
    for name, parts in found.items():
        assert parts and all(f"`{key}`" in rows[name] for key in parts[0])
    bind = next(server for server in found["servers"] if server["name"] == "bind")
    assert bind["features"]["secondary"]["XoT"] == "9.18"
    assert document(monkeypatch, capsys, "list", "traps")[1] == {"traps": found["traps"]}


@pytest.mark.parametrize(("grade", "ready"), [("good", True), ("note", True), ("bad", False)])
def test_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], grade: Any, ready: bool) -> None:
    remark = Remark("engine", grade, "dnsrig-engine 0.1.0", "make setup")
    monkeypatch.setattr(check, "remarks", lambda: iter([remark]))
    monkeypatch.setattr(removal, "clean", lambda: ([], []))
    code, found, _ = document(monkeypatch, capsys, "check")
    assert code == (0 if ready else 1)
    assert found["ready"] is ready and found["remarks"] == [vars(remark)]
    assert set(found) < documented("check")


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system", "knot@system"], zones=[10]))
    code, found, _ = document(monkeypatch, capsys, "report", run)
    assert code == 0 and {*found, "compared", "machines"} == documented("run, report")
    assert found["directory"] == str(run) and Path(found["report"]).is_file()
    assert found["findings"] == json.loads((run / "findings.json").read_text())["findings"]
    variants = found["metrics"][0]["variants"]
    assert all(f"`{key}`" in section("run, report") for key in variants[0])


@pytest.mark.parametrize(("slow", "expected"), [(0.9, 0), (3.0, 1)])
def test_run_with_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], slow: float, expected: int
) -> None:
    run = of_two_servers(tmp_path / "run", slow)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("dnsrig.cli.run.clean_machine", lambda console: None)
    monkeypatch.setattr("dnsrig.cli._on.executing", lambda on, at_once: contextlib.nullcontext(Nothing()))
    code, found, err = document(monkeypatch, capsys, "run", "--resume", run, "--fail-if", "transfer_time > 150 %")
    result = "regression" if expected else "pass"
    assert code == expected and found["compared"]["result"] == result and f"result: {result}" in err
    assert {*found, "machines"} == documented("run, report")


def test_infinity_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    _console.print_document({"a": [1.5, math.inf, (math.nan, -math.inf)], "b": "inf"})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None, [None, None]], "b": "inf"}


def test_quiet_shows_no_progress(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trial = clean_trial(tmp_path)
    for quiet in (True, False):
        with watching(_console.progress(quiet)) as progress:
            progress.trial_started(1, 1, trial.record.spec)
            progress.trial_ended(trial.record.spec, trial, "")
            progress.note("about to end")
        assert bool(capsys.readouterr().err) is not quiet
    complain("an error is no progress")
    assert "an error is no progress" in capsys.readouterr().err


def test_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system", "knot@system"], zones=[10]))
    code, one, _ = document(monkeypatch, capsys, "compare", run, "--base", "server=bind@system")
    assert code == 0 and set(one) == documented("compare")
    assert {*document(monkeypatch, capsys, "compare", run, run)[1], "within"} == documented("compare")


def test_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measured(tmp_path, {"9.18.9": 1.0, "9.18.10": 3.0}, name="a")
    code, found, err = document(monkeypatch, capsys, "history", "--out", tmp_path)
    assert code == 0 and set(found) == documented("history")
    assert found == json.loads((tmp_path / "history.json").read_text())
    assert "history.html" in err, "the path of the page is prose"


def test_plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    far = ["plan", "--zones", "1000", "--rtt", "250ms", "--congestion", "cubic"]
    code, found, _ = document(monkeypatch, capsys, *far)
    assert code == 0 and {*found, "held_out"} == documented("plan")
    (one,) = found["predictions"]
    assert all(f"`{key}`" in section("plan") for key in [*one, *one["limits"][0], *one["alternatives"][0]])


@pytest.mark.parametrize("words", [["run", "tour"], ["history", "tour", "--versions", "bind@forky"]])
def test_a_dry_run_has_no_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    code, out, err = output(monkeypatch, capsys, *words, "--dry-run", "--json")
    assert (code, out) == (2, "") and "--json with --dry-run" in err
