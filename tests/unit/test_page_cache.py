"""What is in the page cache, as the kernel says."""

from __future__ import annotations

from pathlib import Path

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
