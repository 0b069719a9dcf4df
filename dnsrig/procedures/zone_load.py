"""Zone load: a primary starts and loads its zones from files.

The time is from exec of the primary to the last zone answered with the expected serial, as `probe` sees it from another host.
Whether the files are in the page cache decides much of it, so that is an option: `cold` evicts the dataset's files, and only
these, before each start (posix_fadvise(2), POSIX_FADV_DONTNEED); `warm` reads them all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole
from dnsrig.procedures.stage import Result, Stage

DESCRIPTION = "start of a primary: from exec to the last zone loaded and answered"
MAIN_METRIC = "load_time_s"
OPTIONS: dict[str, int | float | str | bool] = {
    "page_cache": "warm",
    "probe_rate_per_s": 1000,
    "drain_s": 0.3,
}
PAGE_CACHE = ("cold", "warm")
SETTLE_S = 0.3
READ_BYTES = 1 << 20


def hosts(options: Mapping[str, int | float | str | bool]) -> dict[str, HostRole]:
    if options["page_cache"] not in PAGE_CACHE:
        raise UsageError(f"options.page_cache = {options['page_cache']!r}", hint=f"one of {', '.join(PAGE_CACHE)}")
    return {"primary": HostRole(role="primary", under_test=True), "observer": HostRole()}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("observer", "primary")]


def measure(stage: Stage) -> Result:
    limit_s = stage.spec.limit_s
    with stage.phase("setup"):
        stage.start_watch()
        stage.prepare_server("primary")
        for file in _files(Path(stage.spec.dataset.path), stage.placements["primary"].state):
            (_evict if stage.option("page_cache") == "cold" else _read)(file)
        time.sleep(SETTLE_S)
        probe = stage.start_probe("probe", "primary", limit_s=limit_s, out=stage.directory / "zones.arrow")
    with stage.profiled(), stage.phase("measure"):
        stage.start_server("primary")
        seen = stage.wait(probe, limit_s=limit_s + 30)
        stage.count_threads()
    with stage.phase("drain"):
        time.sleep(float(stage.option("drain_s")))
        stage.check_servers()
    if seen["outcome"] == "limit":
        return Result("limit", f"{seen['seen']:,} of {seen['zones']:,} zones after {limit_s:g} s")
    return Result("done")


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())


def _evict(path: Path) -> None:
    """Only clean pages can be dropped, so what was just written goes to the disk first."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read(path: Path) -> None:
    with path.open("rb") as file:
        while file.read(READ_BYTES):
            pass
