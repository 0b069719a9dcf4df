"""The server waited for its files to come from the disk: the page cache was cold.

What was read before comes from memory, what was not comes from the disk, so the first repeat may be the slow one. The
signs: tasks of the server's cgroup waited for I/O (PSI), and file cache grew there, which counts the pages that this
cgroup was first to touch. Files that are written grow it as well, so of a secondary, which writes what it receives,
only their absence can be told.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

TITLE = "the server waited for reads: a cold page cache"
SOURCE = (
    "S1: P. Spacek, a primary loads .ch: repeat 0 waited 1 to 5 % of its time for reads (2024); Linux, accounting/psi"
)
LARGEST_SHARE = 0.01
"""Of `measure` with a task waiting for I/O: S1's outlier begins here."""
SHORTEST_S = 0.01
"""Of waiting: less is a few pages, such as those of the program itself."""
LEAST_READ_BYTES = 1 << 20
"""Growth of the file cache: with less, what was waited for was not the reading of zones."""


def after(trial: Trial) -> Conclusion | None:
    record, host = trial.record, trial.subject
    if record.outcome not in ("done", "timeout") or trial.measure is None:
        return None
    waited_us = trial.growth(host, "psi", "io_some_us")
    cache = trial.during_measure(host, "cgroup", "memory_file_bytes")["value"]
    if waited_us is None or len(cache) < 2:
        return cannot_tell(f"No samples of I/O pressure, or of the file cache, of the {host}'s cgroup.")
    measured_s = (trial.measure.end.monotonic_ns - trial.measure.start.monotonic_ns) / 1e9
    waited_s, grown_bytes = waited_us / 1e6, max(cache.to_list()) - int(cache[0])
    share = waited_s / measured_s
    if share < LARGEST_SHARE or waited_s < SHORTEST_S or grown_bytes < LEAST_READ_BYTES:
        return CLEAR
    told = f"waited for I/O for {waited_s:.3f} s ({share:.1%} of the time) while {grown_bytes / 1e6:.1f} MB of file cache came"
    if host not in trial.hosts_as("primary"):
        return cannot_tell(f"The {host} {told}: files read and files written look alike.")
    asked = record.spec.options.get("page_cache", "")
    as_asked = " The experiment asked for a cold page cache." if asked == "cold" else ""
    return Conclusion(
        "found",
        summary=f"The {host} {told} that it had to read.{as_asked}",
        evidence={
            "io_wait_s": round(waited_s, 4),
            "io_wait_percent": round(100 * share, 2),
            "file_cache_grown_bytes": grown_bytes,
            "page_cache": asked,
        },
        series=(f"{host}/psi/io_some_us", f"{host}/cgroup/memory_file_bytes"),
        metrics=(record.spec.main_metric, "io_wait_s"),
        remedy='Read the files once before measuring (`options.page_cache = "warm"`), or evict them before '
        'every repeat ("cold"); compare only repeats of one kind.',
    )
