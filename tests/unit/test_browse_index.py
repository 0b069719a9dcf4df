"""The list of runs: found, filtered, kept, and made again when it is lost or wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from browsing import FIRST, runs
from synthetic import Plan, build

from dnsrig.browse import index as module
from dnsrig.browse import notes, scan
from dnsrig.browse.index import Index, refreshed
from dnsrig.browse.scan import Entry, run_id


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return runs(tmp_path / "runs")


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_S", 0.0)


def by_path(index: Index) -> dict[str, Entry]:
    return {entry.path: entry for entry in index.entries()}


def test_runs_are_found_and_told(root: Path, tmp_path: Path) -> None:
    found = by_path(Index(root, tmp_path / "i.sqlite"))
    assert len(found) == 3
    first = found[FIRST]
    assert (first.experiment, first.variants, first.planned, first.finished) == ("synthetic", 2, 4, 4)
    assert first.complete and first.servers == ("bind@system", "knot@system") and not first.damage
    assert "manifest.json" in found["broken/20250103T120000Z-cccc"].damage


def test_a_single_run_may_be_browsed(root: Path, tmp_path: Path) -> None:
    index = Index(root / FIRST, tmp_path / "i.sqlite")
    (entry,) = index.entries()
    assert index.directory(entry) == (root / FIRST).resolve()


def test_what_is_kept_is_not_read_again(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = by_path(Index(root, tmp_path / "i.sqlite"))
    read: list[Path] = []
    whole = scan.entry
    monkeypatch.setattr(scan, "entry", lambda root, folder: (read.append(folder), whole(root, folder))[1])
    again = Index(root, tmp_path / "i.sqlite")
    assert by_path(again) == before
    assert read == []
    os.utime(root / FIRST / "manifest.json", ns=(1, 1))
    by_path(again)
    assert root.resolve() / FIRST in read


def test_lost_and_new_runs_are_noticed(root: Path, tmp_path: Path) -> None:
    index = Index(root, tmp_path / "i.sqlite")
    by_path(index)
    (root / "broken/20250103T120000Z-cccc/manifest.json").unlink()
    build(root / "other/20250104T120000Z-dddd", Plan(zones=[5], repeats=1))
    assert set(by_path(index)) == set(by_path(Index(root, tmp_path / "i.sqlite")))
    assert "other/20250104T120000Z-dddd" in by_path(index)
    assert "broken/20250103T120000Z-cccc" not in by_path(index)


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_index_is_made_again(root: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "i.sqlite"
    before = by_path(Index(root, file))
    file.write_bytes(content)
    assert by_path(Index(root, file)) == before
    assert by_path(Index(root, file)) == before


def test_a_cut_trial_is_damage(root: Path, tmp_path: Path) -> None:
    record = root / FIRST / "trials/v00/01/trial.json"
    record.write_text(record.read_text()[:-40])
    assert by_path(Index(root, tmp_path / "i.sqlite"))[FIRST].damage == "the record of v00 repeat 1 is cut"


def test_trials_that_come_are_counted(root: Path, tmp_path: Path) -> None:
    index, record = Index(root, tmp_path / "i.sqlite"), root / FIRST / "trials/v00/01/trial.json"
    text = record.read_text()
    record.unlink()
    os.utime(root / FIRST / "manifest.json", ns=(1, 1))
    assert by_path(index)[FIRST].finished == 3
    record.write_text(text)
    assert by_path(index)[FIRST].finished == 4


@pytest.mark.parametrize("change", [{"order": [{"variant": "../../etc", "repeat": 1}]}, {"variants": 3}, {"order": 1}])
def test_a_hostile_manifest_is_damage(root: Path, tmp_path: Path, change: dict[str, object]) -> None:
    path = root / FIRST / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert by_path(Index(root, tmp_path / "i.sqlite"))[FIRST].damage


def test_only_what_changed_is_written() -> None:
    known = {name: Entry(name, name, "1", planned=1, finished=1) for name in "abc"}
    found, changed = refreshed(known, {"a": "1", "b": "2", "d": "1"}, lambda path: Entry(path, path, "2"))
    assert (set(found), changed) == ({"a", "b", "d"}, {"b", "c", "d"})


def test_ids_are_fit_for_an_address_and_differ() -> None:
    paths = ["a/b", "a b/ü", "c/b", "<script>", "..", "a/" + "x" * 300, "a/\udcff"]
    ids = {run_id(path) for path in paths}
    assert len(ids) == len(paths)
    assert all(len(run) < 100 and run.isascii() and "/" not in run and not run.startswith(".") for run in ids)


def test_filters() -> None:
    entry = Entry(
        "i", "p/q", "", "many-zones", "A Title", servers=("bind@forky",), tags=("release",), note="after the Fix"
    )
    assert entry.matches("fix title") and entry.matches("", "many-zones", "bind@forky", "release")
    assert not entry.matches("fix missing") and not entry.matches("", "other") and not entry.matches("", "", "bind@x")


def test_notes_are_kept_whole_and_within_limits(tmp_path: Path) -> None:
    made = notes.made("a\r\nb ", "x, y ,x,", True)
    assert (made.note, made.tags) == ("a\nb", ["x", "y"])
    notes.write(tmp_path, made)
    assert notes.read(tmp_path) == made
    for wrong in (("n" * 4001, ""), ("", "t" * 41), ("", ",".join(map(str, range(21))))):
        with pytest.raises(notes.UsageError):
            notes.made(*wrong, False)
    notes.write(tmp_path, notes.Notes())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "[]", '{"note": 3}', '{"note": "' + "x" * 70_000 + '"}'])
def test_notes_that_are_none_are_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / notes.FILE).write_text(content)
    assert notes.read(tmp_path) == notes.Notes()


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    build(tmp_path / "elsewhere/run", Plan(zones=[5], repeats=1))
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / FIRST / notes.FILE).symlink_to(tmp_path / "secret.json")
    (tmp_path / "secret.json").write_text('{"note": "secret"}')
    found = by_path(Index(root, tmp_path / "i.sqlite"))
    assert len(found) == 3
    assert found[FIRST].note == ""


def test_notes_are_read_from_a_file_up_to_its_limit(tmp_path: Path) -> None:
    for more, note in ((0, "ours"), (1, "")):
        text = '{"note": "ours"}'
        (tmp_path / notes.FILE).write_text(text + " " * (notes.MOST_BYTES - len(text) + more))
        assert notes.read(tmp_path).note == note


def test_a_note_may_be_as_long_as_its_limits() -> None:
    made = notes.made("n" * 4000, ",".join("t" * 38 + f"{number:02}" for number in range(20)), False)
    assert (len(made.note), len(made.tags), len(made.tags[0])) == (4000, 20, 40)


def test_a_record_that_cannot_be_read_is_counted_once(root: Path, tmp_path: Path) -> None:
    """The first fault is reported, whatever comes after it."""
    first, second = (root / FIRST / f"trials/v00/{number}/trial.json" for number in ("01", "02"))
    first.unlink()
    first.mkdir()
    second.write_text("{")
    finished, damage = scan._trials(root / FIRST, json.loads((root / FIRST / "manifest.json").read_text())["order"])
    assert finished == 4 and damage.startswith("the record of v00 repeat 1: ")
    first.rmdir()
    finished, damage = scan._trials(root / FIRST, json.loads((root / FIRST / "manifest.json").read_text())["order"])
    assert (finished, damage) == (3, "the record of v00 repeat 2 is cut")


@pytest.mark.parametrize("end", ["}", "}\n", "}       ", "}\n\n\n\n\n\n\n"])
def test_a_record_ends_with_a_brace_and_little_after_it(root: Path, end: str) -> None:
    order = [{"variant": "v00", "repeat": 1}]
    (root / FIRST / "trials/v00/01/trial.json").write_text("x" * 20 + end)
    assert scan._trials(root / FIRST, order) == (1, "")
    (root / FIRST / "trials/v00/01/trial.json").write_text("x" * 20 + end + " " * 8)
    assert scan._trials(root / FIRST, order) == (1, "the record of v00 repeat 1 is cut")


def run_below(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()
    return folder


def test_runs_are_searched_to_a_depth_and_not_in_hidden_folders_or_runs(tmp_path: Path) -> None:
    deepest, beside = run_below(tmp_path / "a/b/c/d"), run_below(tmp_path / "e")
    run_below(tmp_path / "a/b/c/x/y")
    run_below(tmp_path / ".hidden/run")
    run_below(beside / "inside")
    assert sorted(scan.directories(tmp_path)) == [deepest, beside]


@pytest.mark.parametrize(
    ("most_folders", "most_runs", "found"), [(4, 9, 3), (3, 9, 2), (9, 3, 3), (9, 2, 2), (9, 0, 0)]
)
def test_so_many_folders_and_runs_are_looked_at_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_folders: int, most_runs: int, found: int
) -> None:
    for name in "abc":
        run_below(tmp_path / name)
    monkeypatch.setattr(scan, "MOST_FOLDERS", most_folders)
    monkeypatch.setattr(scan, "MOST_RUNS", most_runs)
    assert len([*scan.directories(tmp_path)]) == found


@pytest.mark.parametrize(
    ("finished", "complete", "created", "when"),
    [
        (3, False, "2025-01-02T03:04:05Z", "2025-01-02 03:04"),
        (4, True, "2025-01-02T03:04:05Z", "2025-01-02 03:04"),
        (5, True, "", "a/run"),
    ],
)
def test_an_entry_is_complete_with_its_last_trial_and_has_a_time_to_the_minute(
    finished: int, complete: bool, created: str, when: str
) -> None:
    entry = Entry("run-1", "a/run", "1", created=created, planned=4, finished=finished, servers=("bind@a",))
    assert (entry.complete, entry.when, Entry.of_json(entry.as_json())) == (complete, when, entry)
