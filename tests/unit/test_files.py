"""Files of a run that somebody else made: nothing outside of it is read or written, nothing is waited for."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import synthetic
from command_line import output
from damaged_files import Watch

from dnsrig import cached, files
from dnsrig.browse import notes, scan
from dnsrig.browse.logs import logs as shown_logs
from dnsrig.cli import _resume
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment.runner import Local
from dnsrig.foreign import DEEPEST
from dnsrig.report import export, write_report
from dnsrig.report.exports import formats
from dnsrig.rundir import Manifest, check_ours, read_json
from dnsrig.runs import rows
from dnsrig.runs.run import Run

SECRET = "what only its owner may read"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_text(SECRET)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic.build(
        tmp_path / "run", synthetic.Plan(servers=["bind@system"], zones=[10], repeats=2, samples=False)
    )


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as found:
        found.bind(str(path))


NO_FILES: dict[str, Callable[[Path], None]] = {
    "a symbolic link": lambda path: path.symlink_to(path.parent.parent / "outside"),
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": bound_socket,
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_only_regular_files_are_read(outside: Path, run: Path, kind: str) -> None:
    """A FIFO without a writer would be waited for."""
    path = run / "x"
    NO_FILES[kind](path)
    with pytest.raises(OSError, match=f"it is {kind}, and no regular file"):
        files.read(path)
    assert rows.content(path, None).damage == f"x cannot be read: it is {kind}, and no regular file"


@contextlib.contextmanager
def unopened(folder: Path) -> Iterator[None]:
    """Nothing below the folder may be opened meanwhile."""
    watch = Watch(folder)
    yield
    assert watch.seen() == set()
    watch.close()


def test_links_are_followed_to_the_folder_and_not_below_it(tmp_path: Path, run: Path) -> None:
    (tmp_path / "here").symlink_to(run)
    assert Run.open(tmp_path / "here").trials and Run.open(tmp_path / "here/.").trials
    (run / "trials").rename(tmp_path / "moved")
    (run / "trials").symlink_to(tmp_path / "moved")
    first, _ = Run.open(run).unreadable
    assert "one of its folders is a link" in first[1]
    with unopened(tmp_path / "moved"), pytest.raises(UsageError, match="is a link, or belongs to another user"):
        check_ours(run)


def test_names_are_of_a_folder_and_not_of_what_a_link_leads_to(tmp_path: Path, run: Path) -> None:
    (run / "a/b").mkdir(parents=True)
    (run / "a/b/2").touch()
    (run / "a/b/1").touch()
    assert files.names(run / "a/b", run) == files.names(run / "a/b") == ["1", "2"]
    (run / "a").rename(tmp_path / "moved")
    (run / "a").symlink_to(tmp_path / "moved")
    with unopened(tmp_path / "moved"):
        assert files.names(run / "a/b", run) == files.names(run / "a", run) == files.names(run / "none", run) == []


DAMAGED_DOCUMENTS = {
    "nested": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "nested a little": b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2),
    "many values": b"[" + b"1," * (files.MOST_VALUES + 1) + b"1]",
    "infinite": b'{"a": 1e999}',
    "no number": b'{"a": NaN}',
    "a number of many digits": b"1" * 5_000,
    "beyond all counters": b"18446744073709551616",
    "half a pair": rb'{"a": "\ud800"}',
}


@pytest.mark.parametrize("what", DAMAGED_DOCUMENTS)
def test_documents_are_what_dnsrig_writes(run: Path, what: str) -> None:
    path = run / "manifest.json"
    path.write_bytes(DAMAGED_DOCUMENTS[what])
    with pytest.raises(DnsrigError, match=r"manifest\.json cannot be read"):
        read_json(path, Manifest)
    assert scan.entry(run.parent, run).damage.startswith("manifest.json cannot be read")


def test_whole_documents_are_read(run: Path) -> None:
    path = run / "x.json"
    values: list[object] = [{"a": [1.5, -(1 << 63), (1 << 64) - 1, "\U0001f600", "\\ud"]}, [[[[]]]], None]
    for value in values:
        path.write_text(json.dumps(value))
        assert files.document(path) == value


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"axes": {"server": [], "size": []}}, "variant v00 has no value of the axis 'size'"),
        ({"specs": {}}, "variant v00 has no spec"),
        ({"variants": []}, "a trial is of the variant v00, which there is not"),
    ],
)
def test_a_manifest_refers_to_what_it_has(run: Path, change: dict[str, object], why: str) -> None:
    """Commands looked these up, and ended as KeyError."""
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    with pytest.raises(DnsrigError, match=f"is not what dnsrig writes: .*{why}"):
        Run.open(run)


def test_a_large_file_is_not_read(run: Path) -> None:
    path = run / "manifest.json"
    os.truncate(path, 1 << 30)
    with pytest.raises(DnsrigError, match="larger than 67 MB"):
        read_json(path, Manifest)
    holes = run / "trials/v00/01/zones.arrow"
    whole = holes.read_bytes()
    for kept in (b"", whole, whole[:-8]):
        holes.write_bytes(kept)
        os.truncate(holes, 1 << 30)
        found = rows.content(holes, None, form=rows.whole_messages)
        assert len(found.data) == len(kept) and "is damaged" in found.damage, "zeros are no message"
    lines = run / "latency.hlog"
    lines.write_text("a line\n")
    os.truncate(lines, 1 << 30)
    assert rows.content(lines, None).data == b"a line\n"


def test_one_bad_run_leaves_the_list_of_runs(run: Path) -> None:
    """FIFOs in place of all that the list reads."""
    for name in ("notes.json", "findings.json", "trials/v00/01/trial.json"):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)
    entry = scan.entry(run.parent, run)
    assert entry.finished == 2 and entry.damage == "the record of v00 repeat 1: it is a FIFO, and no regular file"
    shutil.move(run / "manifest.json", run / "was")
    os.mkfifo(run / "manifest.json")
    assert scan.entry(run.parent, run).damage == "manifest.json cannot be read: it is a FIFO, and no regular file"


def test_one_bad_trial_is_left_out(run: Path) -> None:
    """A record that is nested deeply once ended the whole report."""
    (run / "trials/v00/01/trial.json").write_bytes(DAMAGED_DOCUMENTS["nested"])
    opened = Run.open(run)
    assert [trial.key.repeat for trial in opened.trials] == [2]
    assert f"nested more than {DEEPEST} deep" in opened.unreadable[0][1]


def test_logs_lead_nowhere(outside: Path, run: Path) -> None:
    folder = run / "trials/v00/01/servers/secondary"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.log").unlink(missing_ok=True)
    (folder / "server.log").symlink_to(outside)
    (folder / "cut.log.gz").write_bytes(b"\x1f\x8b")
    (folder / "zeros.log.gz").write_bytes(gzip.compress(b"a line\n"))
    os.truncate(folder / "zeros.log.gz", 1 << 30)
    (folder / "bomb.log.gz").write_bytes(gzip.compress(bytes(1 << 24)))
    trial = Run.open(run).trials[0]
    assert all(SECRET not in "".join(log.lines) for log in shown_logs(trial))
    beginnings = [files.beginning(folder / f"{name}.log.gz", 1_000) for name in ("cut", "zeros", "bomb")]
    assert beginnings == [(b"", False), (b"a line\n", False), (bytes(1_000), True)]


DERIVED = ("report.html", "summary.parquet", "findings.json")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("lost", [False, True])
def test_what_is_derived_replaces_links(outside: Path, run: Path, lost: bool) -> None:
    """For root, a link could lead to any file of the machine."""
    target = outside.parent / "new" if lost else outside
    for name in DERIVED:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(target)
    write_report(run)
    assert outside.read_text() == SECRET and not (outside.parent / "new").exists()
    assert all((run / name).is_file() and not (run / name).is_symlink() for name in DERIVED)
    assert stat.S_IMODE((run / "report.html").stat().st_mode) == 0o666 & ~current_umask()


def current_umask() -> int:
    was = os.umask(0o22)
    os.umask(was)
    return was


def test_an_export_replaces_links_and_enters_none(outside: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the format: a package of others may have written it."""

    def write(_: Run, out: Path) -> list[Path]:
        (out / "figures").mkdir()
        for path in (out / "one", out / "figures/two"):
            path.write_text("exported")
        return [out / "one", out / "figures/two"]

    monkeypatch.setattr(formats()["json"], "write", write)
    to = run / "export"
    to.mkdir()
    (to / "one").symlink_to(outside)
    opened = Run.open(run)
    assert export(opened, "json", to) == [to / "one", to / "figures/two"]
    assert [path.read_text() for path in (to / "one", to / "figures/two", outside)] == ["exported", "exported", SECRET]
    assert sorted(path.name for path in to.iterdir()) == ["figures", "one"], "nothing else is left"
    for linked in (to / "figures", to):
        shutil.rmtree(linked)
        linked.symlink_to(outside.parent)
        assert export(opened, "json", to) == []
        assert {failure.name for failure in opened.failures} == {"json"}
        linked.unlink()
        linked.mkdir()
    assert not (outside.parent / "one").exists() and not (outside.parent / "two").exists()


@pytest.mark.parametrize("kind", ["a symbolic link", "a FIFO"])
def test_a_lock_is_a_file_of_the_run(outside: Path, run: Path, kind: str) -> None:
    NO_FILES[kind](run / ".lock")
    with pytest.raises(OSError, match=f"it is {kind}"), cached.only_one(run, "taken"):
        pass
    assert outside.read_text() == SECRET


def test_a_failed_write_leaves_what_was_there(run: Path) -> None:
    path = run / "report.html"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), files.writing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "before" and not list(run.glob(".report*"))


@pytest.fixture
def foreign(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of another user."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "geteuid", lambda: run.stat().st_uid + 1)
    return run


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("undrawn")
def test_a_run_of_another_user_is_only_read(
    foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, own = contents(foreign), tmp_path / "own"
    for words in (["report", foreign], ["export", foreign, "--format", "json"]):
        code, out, err = output(monkeypatch, capsys, *map(str, words))
        assert code == 0 and "nothing is written into it" in err and str(tmp_path / "cache/reports/run-") in out
    for words in (["report", foreign, "--out", own], ["export", foreign, "--format", "csv", "--out", own]):
        code, _, err = output(monkeypatch, capsys, *map(str, words))
        assert code == 0 and err == ""
    assert (own / "report.html").exists() and (own / "findings.json").exists()
    assert contents(foreign) == before


def test_a_run_of_another_user_is_not_added_to(foreign: Path) -> None:
    before, manifest = contents(foreign), read_json(foreign / "manifest.json", Manifest)
    more = _resume.More(repeats=5, seed=None, max_trials=100, redo_invalid=True)
    adds: list[Callable[[], object]] = [
        lambda: notes.write(foreign, notes.Notes(note="mine")),
        lambda: _resume.prepare(manifest, foreign, more, Local()),
        lambda: _resume.show(manifest, foreign, more, Local()),
    ]
    for add in adds:
        with pytest.raises(UsageError, match="writes nothing into it"):
            add()
    assert contents(foreign) == before


def test_a_descriptor_that_was_inherited_is_read() -> None:
    handle = os.memfd_create("document")
    try:
        os.write(handle, b'{"a": 1}')
        assert files.document(files.DESCRIPTORS / str(handle)) == {"a": 1}
    finally:
        os.close(handle)
