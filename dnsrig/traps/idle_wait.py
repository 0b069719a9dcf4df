"""For most of the time nothing happened: the secondary waited for a timer.

What failed is tried again only when a timer says so; until then zones stay where they are and the CPU idles. The time that is
measured is then the timer's, and says nothing about the server's speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from dnsrig.analysis.read import Trial
from dnsrig.rundir import ServerLimit, ServerRecord, TrialRecord
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

LINK = "link:primary"

TITLE = "most of the time was spent waiting for a timer"
SOURCE = "S1: P. Spacek, 30,000 zones: retry after 30 + 90 s, during which the CPU idles (2024)"
SHORTEST_S = 5.0
"""A pause shorter than this is nobody's retry timer, unless a setting of the server's says so."""
TIMER_SHARES = (0.3, 1.25)
"""A pause that lasts such a part of a timer of the server's is put down to it: work may fill the rest."""
LARGEST_SHARE = 0.3
"""Of the whole time: from here on the pause decides the result."""
IDLE_BELOW = 0.35
"""Share of one CPU during the pause below which a server was waiting; probe's polls cost some."""
QUIET_BELOW = 0.1
"""Share of the link's bytes during the pause below which nothing was being transferred."""


@dataclass(frozen=True)
class Pause:
    """The longest stretch in which no zone became ready."""

    begin_ns: int
    finish_ns: int
    whole_s: float
    """From exec to the last zone, or to the limit."""

    @property
    def length_s(self) -> float:
        return (self.finish_ns - self.begin_ns) / 1e9


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    server = record.servers.get("secondary")
    if record.outcome not in ("done", "limit") or trial.measure is None or server is None:
        return None
    pause = longest_pause(trial, server.exec_ns)
    timer = _timer(server, pause)
    if (timer is None and pause.length_s < SHORTEST_S) or pause.length_s < LARGEST_SHARE * pause.whole_s:
        return CLEAR
    busy = [_grown(trial, pause, host, "cgroup", "cpu_usage_us") for host in ("secondary", "primary")]
    moved, all_moved = _grown(trial, pause, "secondary", LINK, "rx_bytes"), trial.growth("secondary", LINK, "rx_bytes")
    if None in busy or moved is None or all_moved is None:
        return cannot_tell(f"No zone became ready for {pause.length_s:.2f} s, but samples of that time are missing.")
    shares = [(used or 0.0) / 1e6 / pause.length_s for used in busy]
    if max(shares) >= IDLE_BELOW or moved > QUIET_BELOW * all_moved:
        return CLEAR
    return _found(record, server, pause, timer, shares[0])


def longest_pause(trial: Trial, exec_ns: int) -> Pause:
    assert trial.measure is not None
    seen = trial.zones["seen_ns"].drop_nulls().sort().to_list()
    end_ns = seen[-1] if trial.record.outcome == "done" and seen else trial.measure.end.monotonic_ns
    begin_ns, finish_ns = max(pairwise([exec_ns, *seen, end_ns]), key=lambda pair: pair[1] - pair[0])
    return Pause(begin_ns, finish_ns, (end_ns - exec_ns) / 1e9)


def _timer(server: ServerRecord, pause: Pause) -> ServerLimit | None:
    """The timer of the server's that explains this pause."""
    least, most = TIMER_SHARES
    for limit in server.limits:
        if limit.timer_s and least <= pause.length_s / limit.timer_s <= most:
            return limit
    return None


def _grown(trial: Trial, pause: Pause, host: str, source: str, name: str) -> float | None:
    """How much a counter grew in the pause, by the samples inside it."""
    inside = pl.col("time_ns").is_between(pause.begin_ns, pause.finish_ns)
    rows = trial.series(host, source, name).filter(inside)
    return None if rows.height < 2 else float(rows["value"][-1] - rows["value"][0])


def _found(
    record: TrialRecord, server: ServerRecord, pause: Pause, timer: ServerLimit | None, busy: float
) -> Conclusion:
    began_s = (pause.begin_ns - server.exec_ns) / 1e9
    log = record.logs.get("secondary")
    cause = f": its setting {timer.setting} = {timer.value}" if timer else ""
    logged = ", ".join(f"“{kind}” {count:,} times" for kind, count in log.failures.items()) if log else ""
    return Conclusion(
        "found",
        summary=f"From {began_s:.2f} s after exec on, for {pause.length_s:.2f} s of {pause.whole_s:.2f} s, no zone became ready "
        f"and the server was {busy:.0%} busy{cause}{f'; its log says {logged}' if logged else ''}.",
        evidence={
            "pause_s": round(pause.length_s, 3),
            "pause_percent": round(100 * pause.length_s / pause.whole_s, 1),
            "cpu_busy_percent": round(100 * busy, 1),
            "setting": timer.setting if timer else "",
            "log_line": next(iter(log.examples.values()), "") if log else "",
        },
        series=("secondary/cgroup/cpu_usage_us", f"secondary/{LINK}/rx_bytes"),
        metrics=("transfer_time_s", "time_per_zone_ms", "zones_per_s"),
        remedy=timer.remedy[0].upper() + timer.remedy[1:] + "."
        if timer
        else "Find what failed first (the log, and what other traps say); the retry interval only decides how long it shows.",
    )
