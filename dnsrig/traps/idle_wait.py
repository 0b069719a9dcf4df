"""Most of the time nothing happened: the secondary waited for a timer, usually the retry timer.

After a failure, the server tries again only when a timer expires. Until then the zones stay as they are and the CPU
idles. The measured time is then the timer's, and does not show the speed of the server. A zone that the secondary never
had has no SOA record with a retry interval, so the server's own default applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from dnsrig.rundir import LogDrilldown, ServerLimit, ServerRecord
from dnsrig.runs.trial import Trial, total
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
OUTCOMES = COMPARED
TITLE = "most of the time the server waited for a (retry) timer"
SOURCE = "S1: P. Spacek, 30,000 zones: retry after 30 + 90 s, during which the CPU idles (2024)"
WEIGHT = "explains"
SHORTEST_S = 5.0
"""Shortest pause that can be a retry timer, unless a setting of the server allows a shorter one."""
TIMER_SHARES = (0.3, 1.25)
"""Least and largest ratio of a pause to a timer of the server that explains it: work may fill the rest."""
LARGEST_SHARE = 0.3
"""Share of the whole time above which the pauses decide the result."""
IDLE_BELOW = 0.35
"""Share of one CPU during the pauses below which a server was waiting; probe's queries use a part of it."""
QUIET_BELOW = 0.3
"""Share of the links' mean rate below which no zone was being transferred; repeated SOA queries may cause some
traffic."""
DISK_FROM = 0.5
"""Share of a pause with a task waiting for I/O above which the server waited for the disk, not for a timer."""


@dataclass(frozen=True)
class Pause:
    """A stretch in which no zone became ready."""

    begin_ns: int
    finish_ns: int

    @property
    def length_s(self) -> float:
        return (self.finish_ns - self.begin_ns) / 1e9


@dataclass(frozen=True)
class Activity:
    """Activity during a pause, as shares."""

    busy: float
    """Share of one CPU used by the server under test."""
    busiest: float
    """Share of one CPU used by the server under test or a primary, whichever used more."""
    moved: float
    """Rate at which the links moved bytes, as a share of the mean rate."""
    disk: float
    """Share of the time with a task waiting for I/O."""

    @property
    def none(self) -> bool:
        return self.busiest < IDLE_BELOW and self.moved <= QUIET_BELOW and self.disk < DISK_FROM


def after(trial: Trial) -> Conclusion | None:
    server = trial.server
    if trial.measure is None or server is None or not trial.is_cold_start:
        return None
    gaps = gaps_between_zones(trial, server.exec_ns)
    longest, whole_s = max(gaps, key=lambda gap: gap.length_s), _length_s(gaps)
    timer = _timer(server, longest)
    pauses = [gap for gap in gaps if gap.length_s >= min(SHORTEST_S, longest.length_s)]
    if (timer is None and longest.length_s < SHORTEST_S) or _length_s(pauses) < LARGEST_SHARE * whole_s:
        return CLEAR
    activities = [_activity(trial, pause, whole_s) for pause in pauses]
    known = [activity for activity in activities if activity is not None]
    if len(known) < len(pauses):
        return cannot_tell(
            f"No zone became ready for {longest.length_s:.2f} s, but samples from that time are missing."
        )
    idle = [(pause, activity) for pause, activity in zip(pauses, known, strict=True) if activity.none]
    waited_s = _length_s([pause for pause, _ in idle])
    if waited_s < LARGEST_SHARE * whole_s:
        return CLEAR
    busy = sum(activity.busy * pause.length_s for pause, activity in idle) / waited_s
    return _found(trial, server, [pause for pause, _ in idle], whole_s, timer, busy)


def gaps_between_zones(trial: Trial, exec_ns: int) -> list[Pause]:
    """The times from exec to the first zone, from each zone to the next, and to the limit if it ended the trial."""
    assert trial.measure is not None
    seen = trial.zones["seen_ns"].drop_nulls().sort().to_list()
    end_ns = seen[-1] if trial.record.outcome == "done" and seen else trial.measure.end.monotonic_ns
    return [Pause(begin, finish) for begin, finish in pairwise([exec_ns, *seen, end_ns])]


def _length_s(pauses: Sequence[Pause]) -> float:
    return sum(pause.length_s for pause in pauses)


def _timer(server: ServerRecord, pause: Pause) -> ServerLimit | None:
    """The server's timer that explains this pause."""
    least, most = TIMER_SHARES
    for limit in server.limits:
        if limit.timer_s and least <= pause.length_s / limit.timer_s <= most:
            return limit
    return None


def _activity(trial: Trial, pause: Pause, whole_s: float) -> Activity | None:
    """The activity in a pause; None if samples are missing."""
    spec = trial.record.spec
    links = dict.fromkeys(spec.interface(trial.subject, primary) for primary in spec.primaries)
    busy_us = [_grown(trial, pause, host, "cgroup", "cpu_usage_us") for host in (trial.subject, *spec.primaries)]
    moved = total(_grown(trial, pause, trial.subject, link, "rx_bytes") for link in links)
    all_moved = total(trial.growth(trial.subject, link, "rx_bytes") for link in links)
    busy = [used_us / 1e6 / pause.length_s for used_us in busy_us if used_us is not None]
    if len(busy) < len(busy_us) or moved is None or all_moved is None:
        return None
    disk_us = _grown(trial, pause, trial.subject, "psi", "io_some_us") or 0.0  # not every kernel reports it
    rate = moved / pause.length_s / (all_moved / whole_s) if all_moved else 0.0
    return Activity(busy[0], max(busy), rate, disk_us / 1e6 / pause.length_s)


def _grown(trial: Trial, pause: Pause, host: str, source: str, name: str) -> float | None:
    """Growth of a counter in the pause, from the samples inside it."""
    inside = pl.col("time_ns").is_between(pause.begin_ns, pause.finish_ns)
    rows = trial.series(host, source, name).filter(inside)
    return None if rows.height < 2 else float(rows["value"][-1] - rows["value"][0])


def _found(
    trial: Trial,
    server: ServerRecord,
    pauses: Sequence[Pause],
    whole_s: float,
    timer: ServerLimit | None,
    busy: float,
) -> Conclusion:
    spec, log = trial.record.spec, trial.log
    began_s, paused_s = (pauses[0].begin_ns - server.exec_ns) / 1e9, _length_s(pauses)
    longest_s = max(pause.length_s for pause in pauses)
    zones_then = int((trial.zones["seen_ns"].drop_nulls() <= pauses[0].begin_ns).sum())
    more = f" (the longest of {len(pauses)} pauses, {paused_s:.2f} s in all)" if len(pauses) > 1 else ""
    cause = f": its setting {timer.setting} = {timer.value}" if timer else ""
    first = _first_failure(log)
    first_s = trial.since_exec_s(log.first_failure_realtime_ns.get(first)) if log else None
    return Conclusion(
        "found",
        summary=f"Beginning {began_s:.2f} s after exec, with {zones_then:,} of {spec.dataset.zones:,} zones done, no zone became "
        f"ready for {longest_s:.2f} s of {whole_s:.2f} s{more}, and the server was {busy:.0%} busy{cause}{_logged(log, first, first_s)}.",
        evidence={
            "pause_s": round(longest_s, 3),
            "pauses": len(pauses),
            "pauses_percent": round(100 * paused_s / whole_s, 1),
            "first_pause_begins_s": round(began_s, 3),
            "zones_then": zones_then,
            "cpu_busy_percent": round(100 * busy, 1),
            "setting": timer.setting if timer else "",
            "failed_lines": sum(log.failures.values()) if log else None,
            "first_failure_s": None if first_s is None else round(first_s, 3),
            "log_line": log.examples.get(first, "") if log else "",
        },
        series=(
            f"{trial.subject}/cgroup/cpu_usage_us",
            *(f"{trial.subject}/{spec.interface(trial.subject, p)}/rx_bytes" for p in spec.primaries),
        ),
        metrics=(spec.main_metric, "time_per_zone_ms", "zones_per_s"),
        remedy=timer.remedy[0].upper() + timer.remedy[1:] + "."
        if timer
        else "Find out what failed first, from the log and other traps. The retry interval only decides how long the failure is visible.",
    )


def _first_failure(log: LogDrilldown | None) -> str:
    """The kind of failure that is the first in the log; empty without failures."""
    if log is None or not log.failures:
        return ""
    return min(log.failures, key=lambda kind: log.first_failure_realtime_ns.get(kind, float("inf")))


def _logged(log: LogDrilldown | None, first: str, first_s: float | None) -> str:
    if log is None or not first:
        return ""
    kinds = dict(sorted(log.failures.items(), key=lambda item: item[0] != first))
    counted = ", ".join(f"{kind} {count:,} times" for kind, count in kinds.items())
    when = "" if first_s is None else f", first {first_s:.2f} s after exec (±{log.resolution_ns / 1e9:g} s)"
    return f"; its log reports {counted}{when}"
