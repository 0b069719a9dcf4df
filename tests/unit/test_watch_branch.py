"""`dnsrig watch-branch`: one text and an exit status, and each change told once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import output
from history_data import measured

from dnsrig.cli import _history, watch_branch
from dnsrig.comparison.history import News, history, news, shows_again
from dnsrig.comparison.summary import compare_two, describe, variant_row
from dnsrig.errors import DnsrigError
from dnsrig.experiment import preparation
from dnsrig.experiment.versions import runs_in
from dnsrig.experiment.watched import FILE, Watched
from dnsrig.stats import statistics

STEADY = {"9.18.9": 1.0, "9.18.10": 1.0}
BRANCH = "bind@git:main"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A night in which these versions are measured, each so many times as slow; exit status, text, complaints."""
    nights = iter("abcdefghijkl")

    def sleep(factors: dict[str, float], errors: int = 0, confirmed: float = 3.0) -> tuple[int, str, str]:
        def measure(request: object, folder: Path, may_differ: list[str], *, quiet: bool) -> int:
            if factors:
                measured(folder, factors, repeats=10, name=next(nights))
            return errors

        def again(one: News, request: object, folder: Path, *, quiet: bool) -> bool:
            both = {one.change.last.label: 1.0, one.change.first.label: confirmed}
            return shows_again(one, measured(tmp_path / "again", both, repeats=10, name=next(nights)))

        monkeypatch.setattr(_history, "measure_lacking", measure)
        monkeypatch.setattr(_history, "is_confirmed", again)
        monkeypatch.setattr(watch_branch, "_newest", lambda branch: f"{branch} as it is now")
        monkeypatch.setattr(watch_branch, "_build", lambda version, requests: None)
        return output(monkeypatch, capsys, "watch-branch", BRANCH, "synthetic", "--out", tmp_path)

    return sleep


def test_nothing_new_is_silent(night: Any) -> None:
    assert night(STEADY)[:2] == (0, "")
    assert night({})[:2] == (0, "")


def test_a_regression_is_told_once(night: Any, tmp_path: Path) -> None:
    night(STEADY)
    code, text, _ = night({"9.18.11": 3.0})
    assert code == 1
    assert text.splitlines()[0] == "bind@git:main as it is now: 1 worse, 0 changed otherwise"
    assert "worse: synthetic, bind zones=50, transfer_time_s: from 9.18.10 to 9.18.11" in text
    assert f"page: {tmp_path}/synthetic/history.html" in text
    assert night({"9.18.12": 3.0})[:2] == (0, "")
    code, text, _ = night({"9.18.13": 1.0})
    assert code == 0, "it is mended, which is told and no regression"
    assert "0 worse, 1 changed otherwise" in text
    assert len(Watched.read(tmp_path, BRANCH).told) == 2


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_what_one_run_of_both_does_not_show_is_no_regression(night: Any, tmp_path: Path, factor: float) -> None:
    night(STEADY)
    assert night({"9.18.11": 3.0}, confirmed=factor)[:2] == (0, "")
    assert len(Watched.read(tmp_path, BRANCH).told) == 1, "it is not looked at again each night"


def test_rounds_that_drift_hide_no_regression(tmp_path: Path) -> None:
    """The second run shows what its own report affirms: 20 % in each of ten rounds, each 20 % slower than the last."""
    for name, factors in (("a", STEADY), ("b", {"9.18.11": 3.0})):
        measured(tmp_path, factors, repeats=10, name=name)
    (one,) = news(history(runs_in(tmp_path / "runs")), set())
    again = measured(tmp_path / "again", {"9.18.10": 1.0, "9.18.11": 1.2}, repeats=10, drift=1.2)
    before, after = again.manifest.variants
    metric = describe("transfer_time_s")
    times = [variant_row(again, variant, metric).samples.measured for variant in (after, before)]
    assert (statistics.rank_test(*times) or 0) > 0.05, "all repeats together do not tell it"
    assert compare_two(again, after, before, metric).by_rounds
    assert shows_again(one, again)


@pytest.mark.full
def test_trials_that_failed_are_no_answer(night: Any, tmp_path: Path) -> None:
    night(STEADY)
    code, text, said = night({"9.18.11": 3.0}, 2)
    assert (code, text) == (3, "")
    assert "2 trial(s) failed" in said
    assert night({})[0] == 1, "what was not told stays to be told"


def test_a_folder_watches_one_branch(tmp_path: Path, night: Any) -> None:
    Watched(branch="bind@git:bind-9.20").write(tmp_path)
    code, _, said = night(STEADY)
    assert code == 2
    assert "watches bind@git:bind-9.20" in said


def test_a_commit_that_cannot_be_built_is_no_regression(
    night: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(branch: str) -> str:
        raise DnsrigError("it cannot be built")

    monkeypatch.setattr(watch_branch, "_newest", fails)
    code, text, said = output(monkeypatch, capsys, "watch-branch", BRANCH, "startup", "--out", tmp_path)
    assert (code, text) == (3, "")
    assert "cannot be built" in said
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["starttup"], "no experiment"),
        (["startup", "--scale", "huge"], "no scale"),
        (["startup", "--metric", "redy"], "no metric"),
    ],
)
def test_bad_input_is_told_before_anything_is_built(
    words: list[str],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def built(*_: object) -> None:
        raise AssertionError("it was built")

    monkeypatch.setattr(watch_branch, "_newest", lambda branch: f"bind@git:{40 * 'a'}")
    monkeypatch.setattr(preparation, "installed", built)
    code, text, said = output(monkeypatch, capsys, "watch-branch", BRANCH, *words, "--out", tmp_path)
    assert (code, text) == (2, "")
    assert complaint in said


@pytest.mark.parametrize("branch", ["bind@forky", "bind@git:v9.18.1..v9.18.2"])
def test_what_is_no_branch_is_refused(
    branch: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = output(monkeypatch, capsys, "watch-branch", branch, "startup", "--out", tmp_path)
    assert code == 2
    assert "is not a branch" in said
