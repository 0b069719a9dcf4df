"""What is in the page cache, as the kernel says."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dnsrig.lab import ledger
from dnsrig.procedures import zone_load


def test_what_was_just_read_is_cached(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1_000_000)
    zone_load._read(path)
    assert zone_load.cached_share([path]) == 1.0


def test_nothing_is_not_cached(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert zone_load.cached_share([tmp_path / "empty"]) == 0.0


@pytest.mark.skipif(not ledger.MEMORY.is_dir(), reason="there is no tmpfs at the usual place")
def test_a_tmpfs_is_never_cold() -> None:
    """Eviction does nothing there, and does not say so."""
    path = ledger.MEMORY / "dnsrig-test-of-the-page-cache"
    path.write_bytes(b"x" * 1_000_000)
    try:
        zone_load._evict(path)
        assert zone_load.cached_share([path]) == 1.0
    finally:
        path.unlink()


@pytest.mark.parametrize(("page_cache", "done"), [("cold", "evicted"), ("warm", "read")])
@pytest.mark.parametrize(("role", "names"), [("primary", ["a.zone", "b.db"]), ("secondary", ["b.db"])])
def test_files_are_evicted_or_read_before_the_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_cache: str, done: str, role: str, names: list[str]
) -> None:
    """A secondary has its zones among the files that it stored."""
    for name in ("dataset/zones/a.zone", "state/b.db"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    seen: list[str] = []
    monkeypatch.setattr(zone_load, "_evict", lambda path: seen.append(f"evicted {path.name}"))
    monkeypatch.setattr(zone_load, "_read", lambda path: seen.append(f"read {path.name}"))
    monkeypatch.setattr(zone_load, "cached_share", lambda files: 0.25 * len(files))
    monkeypatch.setattr(zone_load, "SETTLE_S", 0)
    placement = SimpleNamespace(dataset=tmp_path / "dataset", state=tmp_path / "state", role=role)

    def start(name: str) -> None:
        seen.append(f"{name} started")

    def time_zones(probe: str, begin: Callable[[], None]) -> str:
        begin()
        return f"{probe} done"

    context: Any = SimpleNamespace(
        option={"page_cache": page_cache}.get,
        phase=lambda name: nullcontext(),
        start_watch=lambda: None,
        servers=SimpleNamespace(placements={role: placement}, start=start),
        instruments=SimpleNamespace(start_probe=lambda name, host, **_: f"{name} of {host}"),
        summaries={},
        spec=SimpleNamespace(limit_s=60),
        directory=tmp_path,
        time_zones=time_zones,
    )
    result: object = zone_load.time_start(context, role, lambda: seen.append("prepared"))
    assert result == f"probe of {role} done"
    assert seen == ["prepared", *(f"{done} {name}" for name in names), f"{role} started"]
    assert context.summaries == {"page-cache": {"cached_share": 0.25 * len(names)}}


def test_the_share_is_over_the_pages_of_all_files(tmp_path: Path) -> None:
    """A part of a page is a page; what is never read of a file with a hole is not cached."""
    (whole := tmp_path / "whole").write_bytes(b"x" * (3 * mmap.PAGESIZE - 1))
    (hole := tmp_path / "hole").touch()
    os.truncate(hole, 5 * mmap.PAGESIZE)
    zone_load._read(whole)
    assert zone_load.cached_share([whole, hole]) == 3 / 8
    assert zone_load.cached_share([]) == 0
