"""No command replaces a file that it reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
from command_line import output

from dnsrig import outputs
from dnsrig.errors import UsageError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic.build(tmp_path / "run", synthetic.Plan(repeats=2, samples=False))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_output_is_no_input_by_whatever_path(tmp_path: Path) -> None:
    read, link, hard, new = (tmp_path / name for name in ("read", "link", "hard", "new"))
    read.write_text("content")
    link.symlink_to(read)
    hard.hardlink_to(read)
    for path in (read, link, hard, tmp_path / "." / "read"):
        with pytest.raises(UsageError, match="is the same file as"):
            outputs.check(path, [new, read])
    outputs.check(new, [read])
    outputs.write(read, b"replaced")
    assert hard.read_text() == "content", "the new content is in another file"
    outputs.write(Path("/dev/null"), b"gone")


@pytest.mark.parametrize("option", ["--svg", "--png"])
def test_a_chart_of_a_plan_replaces_no_file_of_its_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, option: str
) -> None:
    before = contents(run)
    arguments = ("plan", "--from-run", str(run), "--zones", "9", option, str(run / "manifest.json"))
    code, _, err = output(monkeypatch, capsys, *arguments)
    assert code == 2 and "is the same file as" in err and contents(run) == before


@pytest.mark.parametrize("place", [".", "trials", "trials/v01"])
def test_an_export_is_not_written_among_the_files_of_its_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, place: str
) -> None:
    before = contents(run)
    code, _, err = output(monkeypatch, capsys, "export", str(run), "--format", "json", "--out", str(run / place))
    assert code == 2 and "files of the run itself" in err and contents(run) == before


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_an_export_replaces_no_file_of_its_run_by_a_link(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Path,
    tmp_path: Path,
    link: Callable[..., None],
) -> None:
    before = contents(run)
    out = tmp_path / "out"
    out.mkdir()
    export = ("export", str(run), "--format", "json", "--out", str(out))
    (name,) = (Path(line).name for line in output(monkeypatch, capsys, *export)[1].splitlines())
    assert output(monkeypatch, capsys, *export)[0] == 0, "a second time replaces the first"
    (out / name).unlink()
    link(out / name, run / "manifest.json")
    code, _, err = output(monkeypatch, capsys, *export)
    assert code == 2 and "is the same file as" in err and contents(run) == before
