"""Things in the cache appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dnsrig import cached
from dnsrig.errors import DnsrigError


def build(target: Path, text: str) -> None:
    with cached.locked(target.parent), cached.making(target) as made:
        made.mkdir()
        (made / "content").write_text(text)


def test_what_was_built_appears(tmp_path: Path) -> None:
    build(tmp_path / "thing", "first")
    build(tmp_path / "thing", "second")
    assert (tmp_path / "thing/content").read_text() == "second"


def test_interrupted_leaves_what_was_there(tmp_path: Path) -> None:
    build(tmp_path / "thing", "whole")
    with pytest.raises(KeyboardInterrupt), cached.making(tmp_path / "thing") as made:
        made.mkdir()
        raise KeyboardInterrupt
    assert (tmp_path / "thing/content").read_text() == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "thing"]


def test_leftovers_of_a_killed_process_go(tmp_path: Path) -> None:
    (tmp_path / f"{cached.UNFINISHED}abc" / "made").mkdir(parents=True)
    build(tmp_path / "thing", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "thing"]


def test_only_one(tmp_path: Path) -> None:
    with (
        cached.only_one(tmp_path, "taken"),
        pytest.raises(DnsrigError, match="taken"),
        cached.only_one(tmp_path, "taken"),
    ):
        pass
    with cached.only_one(tmp_path, "taken"):
        pass


OWNER = """
import os, pathlib, subprocess, sys
from dnsrig import cached
with cached.only_one(pathlib.Path(sys.argv[1]), "taken") as lock:
    child = subprocess.Popen(["cat"], stdin=0, pass_fds=[lock], stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    os._exit(1)
"""


def test_what_a_dead_owner_started_is_waited_for(tmp_path: Path) -> None:
    """The child has the folder as long as it lives; it ends here when somebody waits for it."""
    reading, writing = os.pipe()
    subprocess.run([sys.executable, "-c", OWNER, str(tmp_path)], stdin=reading, check=False)
    os.close(reading)
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        os.close(writing)

    with cached.only_one(tmp_path, "taken", note):
        assert len(notes) == 1, "it had to wait"


def test_it_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "ENDING_LIMIT_S", 0.0)
    reading, writing = os.pipe()
    subprocess.run([sys.executable, "-c", OWNER, str(tmp_path)], stdin=reading, check=False)
    with pytest.raises(DnsrigError, match="taken"), cached.only_one(tmp_path, "taken"):
        pass
    os.close(reading)
    os.close(writing)


def test_a_folder_that_is_held_stays_its_owners_by_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with cached.held(folder, "taken") as is_ours:
        with pytest.raises(DnsrigError, match="taken"), cached.held(folder, "taken"):
            pass
        assert is_ours()
        folder.rename(tmp_path / "renamed")
        folder.mkdir()
        assert not is_ours()
        with pytest.raises(DnsrigError, match="taken"), cached.held(tmp_path / "renamed", "taken"):
            pass
