"""The server waited until its files came from disk: the page cache was cold.

Files that were read before come from memory, others from disk, so the first repeat may be the slow one. The signs:
tasks in the server's cgroup waited for I/O (PSI), and the cgroup's file cache grew. It counts the pages that this
cgroup was first to touch. Written files add to it as well. So for a secondary, which writes what it receives, the trap
can only rule out a cold page cache.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "stalls and warm-up"
OUTCOMES = COMPARED
TITLE = "the server waited for reads: a cold page cache"
SOURCE = (
    "S1: P. Spacek, a primary loads .ch: repeat 0 waited 1 to 5 % of its time for reads (2024); Linux, accounting/psi"
)
LARGEST_SHARE = 0.01
"""Share of `measure` with a task waiting for I/O: S1's outlier begins here."""
SHORTEST_S = 0.01
"""Shortest wait: less is a few pages, such as the pages of the program itself."""
LEAST_READ_BYTES = 1 << 20
"""Least growth of the file cache: with less, the wait was not for zones."""


def after(trial: Trial) -> Conclusion | None:
    record, host = trial.record, trial.subject
    if trial.measure is None:
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
    told = f"waited for I/O for {waited_s:.3f} s ({share:.1%} of the time) while its file cache grew by {grown_bytes / 1e6:.1f} MB"
    if host not in trial.hosts_as("primary"):
        return cannot_tell(f"The {host} {told}, but files that are read and files that are written look alike.")
    asked = record.spec.options.get("page_cache", "")
    as_asked = " The experiment asked for a cold page cache." if asked == "cold" else ""
    return Conclusion(
        "found",
        summary=f"The {host} {told}: it read its files from disk.{as_asked}",
        evidence={
            "io_wait_s": round(waited_s, 4),
            "io_wait_percent": round(100 * share, 2),
            "file_cache_grown_bytes": grown_bytes,
            "page_cache": asked,
        },
        series=(f"{host}/psi/io_some_us", f"{host}/cgroup/memory_file_bytes"),
        metrics=(record.spec.main_metric, "io_wait_s"),
        remedy='Read the files once before measuring (`options.page_cache = "warm"`), or evict them before '
        'every repeat ("cold"). Compare only repeats of one kind.',
    )
