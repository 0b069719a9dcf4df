"""Zone load: a primary starts and loads its zones from files.

The time is from exec of the primary to the last zone answered with the expected serial, as `probe` sees it from another
host. Whether the files are in the page cache decides much of it, so that is an option: `cold` evicts the dataset's
files, and only these, before each start (posix_fadvise(2), POSIX_FADV_DONTNEED); `warm` reads them all.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = "start of a primary: from exec to the last zone loaded and answered"
MAIN_METRIC = "load_time_s"
OPTIONS: dict[str, Scalar] = {
    "page_cache": "warm",
    "probe_rate_per_s": 1000,
    "drain_s": 0.3,
}
CHOICES = {"page_cache": ("cold", "warm")}
SETTLE_S = 0.3
READ_BYTES = 1 << 20


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    return {"primary": HostRole(role="primary", under_test=True)}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return []


def checks(spec: TrialSpec) -> list[str]:
    return ["page-cache"]


def measure(context: TrialContext) -> Result:
    return time_start(context, "primary", lambda: context.servers.prepare("primary"))


def time_start(context: TrialContext, name: str, prepare: Callable[[], None]) -> Result:
    """Measure from exec of the server of host ``name`` to the last zone answered, after ``prepare`` has provided its
    zones.

    In between, its files are evicted from the page cache or read into it, depending on ``options.page_cache``.
    """
    with context.phase("setup"):
        context.start_watch()
        prepare()
        placement = context.servers.placements[name]
        files = list(
            _files(placement.dataset, placement.state) if placement.role == "primary" else _files(placement.state)
        )
        for file in files:
            (_evict if context.option("page_cache") == "cold" else _read)(file)
        cached = cached_share(files)
        context.summaries["page-cache"] = {"cached_share": cached}
        time.sleep(SETTLE_S)
        probe = context.instruments.start_probe(
            "probe", name, limit_s=context.spec.limit_s, out=context.directory / "zones.arrow"
        )
    return context.time_zones(probe, lambda: context.servers.start(name))


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())


def cached_share(files: Iterable[Path]) -> float:
    """The part of the pages of ``files`` that is in the page cache (mincore(2)), 0..1."""
    libc = ctypes.CDLL(None, use_errno=True)
    pages = cached = 0
    for path in files:
        if not (size := path.stat().st_size):
            continue
        flags = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE) as mapped:
            # Private, so that ctypes may have the address of what is only read.
            start = ctypes.c_char.from_buffer(mapped)
            try:
                failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), flags)
            finally:
                del start
        if failed:
            raise OSError(ctypes.get_errno(), f"mincore: {os.strerror(ctypes.get_errno())}", str(path))
        pages += len(flags)
        cached += sum(flag & 1 for flag in flags)
    return cached / pages if pages else 0.0


def _evict(path: Path) -> None:
    """Evict a file from the page cache. Only clean pages can be dropped, so new data is written to the disk first."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(READ_BYTES):
            pass
