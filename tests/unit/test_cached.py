"""Things in the cache appear whole or not at all."""

from __future__ import annotations

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
