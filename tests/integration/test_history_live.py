"""A history of a real server: what it lacks is measured, what it has is not measured again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import experiment, output

pytestmark = [pytest.mark.root, pytest.mark.servers]


@pytest.mark.full
def test_a_history_measures_what_it_lacks_and_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toml, out = tmp_path / "small.toml", tmp_path / "history"
    toml.write_text(experiment("A small history", "How long?"))

    def history(*arguments: str) -> tuple[str, dict[str, Any]]:
        code, told, said = output(monkeypatch, capsys, "history", *arguments, "--out", out)
        assert (code, "small") == (0, json.loads((out / "history.json").read_text())["experiment"]), said
        return told, json.loads((out / "history.json").read_text())

    def trials(found: dict[str, Any]) -> list[tuple[str, int]]:
        (metric,) = found["metrics"]
        (series,) = metric["series"]
        return [(point["server"], sum(point["outcomes"].values())) for point in series["versions"]]

    _, first = history(str(toml), "--versions", "knot@forky")
    assert trials(first) == [("knot@forky", 1)]
    _, again = history(str(toml), "--versions", "knot@forky")
    assert again == first
    told, more = history(str(toml), "--versions", "knot@forky", "--repeats", "2", "--export", "bencher")
    assert trials(more) == [("knot@forky", 2)]
    assert len(more["runs"]) == 2
    assert "no change can be distinguished" in told
    (written,) = (out / "export/bencher").iterdir()
    assert str(written) in told
    assert all((out / run["path"] / "report.html").is_file() for run in more["runs"])
    drawn, same = history()
    assert same == more
    assert drawn.splitlines()[0] == told.splitlines()[0]


@pytest.mark.full
def test_another_experiment_in_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toml, out = tmp_path / "small.toml", tmp_path / "history"
    toml.write_text(experiment("A small history", "How long?"))
    assert output(monkeypatch, capsys, "history", toml, "--versions", "knot@forky", "--out", out)[0] == 0
    arguments = ["--versions", "knot@forky", "--out", out]
    code, _, said = output(monkeypatch, capsys, "history", toml, *arguments, "--set", "limit_s=11", "--repeats", "2")
    assert code == 2
    assert "limit_s" in said
    code, _, said = output(monkeypatch, capsys, "history", "startup", *arguments)
    assert code == 2
    assert "the history of small" in said
