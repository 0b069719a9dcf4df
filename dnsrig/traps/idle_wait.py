"""For most of the time nothing happened: the secondary waited for a timer.

What failed is tried again only when a timer says so; until then zones stay where they are and the CPU idles. The time that is
measured is then the timer's, and says nothing about the server's speed.
"""

from __future__ import annotations

import itertools

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

TITLE = "most of the time was spent waiting for a timer"
SOURCE = "S1: P. Spacek, 30,000 zones: retry after 30 + 90 s, during which the CPU idles (2024)"
SHORTEST_S = 5.0
"""A pause shorter than this is nobody's retry timer."""
LARGEST_SHARE = 0.3
"""Of the whole time: from here on the pause decides the result."""
IDLE_BELOW = 0.2
"""Share of one CPU during the pause below which the server was waiting."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    phase, server = trial.measure, record.servers.get("secondary")
    if record.outcome not in ("done", "limit") or phase is None or server is None:
        return None
    seen = trial.zones["seen_ns"].drop_nulls().sort().to_list()
    end_ns = seen[-1] if record.outcome == "done" else phase.end.monotonic_ns
    begin_ns, finish_ns = _longest_pause([server.exec_ns, *seen, end_ns])
    pause_s, whole_s = (finish_ns - begin_ns) / 1e9, (end_ns - server.exec_ns) / 1e9
    if pause_s < SHORTEST_S or pause_s < LARGEST_SHARE * whole_s:
        return CLEAR
    busy = _busy_share(trial, begin_ns, finish_ns)
    if busy is None:
        return cannot_tell(
            f"No zone became ready for {pause_s:.1f} s, but there are no samples of the CPU for that time."
        )
    if busy >= IDLE_BELOW:
        return CLEAR
    left = record.spec.dataset.zones - sum(when <= begin_ns for when in seen)
    log = record.logs.get("secondary")
    failures = {kind: count for kind, count in log.failures.items() if kind != "zone-done"} if log else {}
    logged = "; the log says " + ", ".join(f"“{kind}” {count:,} times" for kind, count in failures.items())
    return Conclusion(
        "found",
        summary=f"From {(begin_ns - server.exec_ns) / 1e9:.1f} s after exec on, for {pause_s:.1f} s, no zone became ready while "
        f"{left:,} were missing and the CPU was {busy:.0%} busy{logged if failures else ''}.",
        evidence={
            "pause_s": round(pause_s, 2),
            "pause_percent": round(100 * pause_s / whole_s, 1),
            "zones_missing": left,
            "cpu_busy_percent": round(100 * busy, 1),
            "log_line": next(iter(log.examples.values()), "") if log else "",
        },
        series=("secondary/cgroup/cpu_usage_us",),
        metrics=("transfer_time_s", "time_per_zone_ms", "zones_per_s"),
        remedy="Find what failed first (the log, and what other traps say); the retry interval only decides how long it shows.",
    )


def _longest_pause(times_ns: list[int]) -> tuple[int, int]:
    return max(itertools.pairwise(times_ns), key=lambda pair: pair[1] - pair[0])


def _busy_share(trial: Trial, begin_ns: int, finish_ns: int) -> float | None:
    """CPU time of the secondary in a stretch of time, as a share of one CPU."""
    rows = trial.series("secondary", "cgroup", "cpu_usage_us")
    rows = rows.filter((rows["time_ns"] >= begin_ns) & (rows["time_ns"] <= finish_ns))
    if rows.height < 2:
        return None
    span_us = (rows["time_ns"][-1] - rows["time_ns"][0]) / 1000
    return float((rows["value"][-1] - rows["value"][0]) / span_us) if span_us > 0 else None
