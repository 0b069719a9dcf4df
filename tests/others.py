"""Whether a test that measures can be judged: what other programs took of this machine's CPUs meanwhile.

Told from the kernel's accounts alone and not by any trap, so a trap that is broken cannot excuse itself.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dnsrig.rundir import TrialRecord

CANNOT_JUDGE = "cannot judge here"
BUSY_SHARE = 0.10
"""Of one CPU's time, taken by other programs and the hypervisor, from which a machine is busy."""
TICKS_PER_S = 100
"""USER_HZ of /proc/stat (proc(5)), the same on every architecture that we know."""
REPETITIONS = 2
"""How often a trial is repeated while its instrument is late. A machine that stands still once says nothing of the
code; an instrument that is late each time does."""
LATE = (" was late", "the instruments' CPU was overloaded")
"""What the reasons of trials contain whose instrument was late."""

TOLD_BY_TIME = {
    "blocked-thread",
    "cold-first-interval",
    "cpu-contention",
    "generator-bottleneck",
    "mean-hides-tail",
    "queries-sent-late",
    "rate-not-sent",
    "stalled-server",
    "udp-buffer-drops",
}
"""Traps that are right to find something where others take the CPU: who has no CPU reads no socket, either. All others
count things, and are judged on any machine."""


@dataclass(frozen=True)
class Moment:
    """The CPU accounts, in seconds since the machine and this process began."""

    time_s: float
    programs_s: float
    steal_s: float
    own_s: float
    """Of this process and of those of its children that have ended."""

    @classmethod
    def now(cls) -> Moment:
        user, nice, system, _idle, _iowait, _irq, _softirq, steal, *_ = (
            int(ticks) / TICKS_PER_S for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        )
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own_s = sum(one.ru_utime + one.ru_stime for one in usage)
        return cls(time.monotonic(), user + nice + system, steal, own_s)


def share_of_others(before: Moment, after: Moment) -> float:
    """What others took, as a share of one CPU's time."""
    others_s = (after.programs_s - before.programs_s) - (after.own_s - before.own_s)
    return (max(0.0, others_s) + after.steal_s - before.steal_s) / max(after.time_s - before.time_s, 0.01)


def excused(traps: Collection[str], others: float) -> bool:
    """Whether nothing can be concluded from what ``traps`` say wrongly, where ``others`` took so much of a CPU."""
    return others > BUSY_SHARE and set(traps) <= TOLD_BY_TIME


def skip_if_excused(traps: Collection[str], others: float, what: object) -> None:
    """Skip this test where nothing can be judged; ``what`` was seen."""
    if excused(traps, others):
        pytest.skip(f"{CANNOT_JUDGE}: others took {others:.0%} of a CPU, and {what}")


def was_late(record: TrialRecord) -> bool:
    return record.outcome == "invalid" and any(words in record.reason for words in LATE)


def until_in_time(execute: Callable[[], TrialRecord]) -> TrialRecord:
    """The first trial whose instrument was not late, or the last of `REPETITIONS` more. ``execute`` makes a trial."""
    record = execute()
    for _ in range(REPETITIONS):
        if not was_late(record):
            break
        record = execute()
    return record


def closing_lines(skipped: Iterable[pytest.TestReport]) -> list[str]:
    """What the end of a session says: each test that could not be judged and why, and their number."""
    reasons = {report.nodeid: str(report.longrepr[-1]) for report in skipped if isinstance(report.longrepr, tuple)}
    unjudged = [f"{test}: {reason}" for test, reason in reasons.items() if CANNOT_JUDGE in reason]
    return [*unjudged, f"{len(unjudged)} could not be judged here"]
