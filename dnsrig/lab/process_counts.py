"""What the kernel counted of processes: context switches and page faults, from /proc (proc(5)).

Reading takes some ten microseconds a thread, and is done before and after `measure`, so nothing of it is measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dnsrig.rundir import ProcessCounts

PROC = Path("/proc")
VOLUNTARY, INVOLUNTARY = "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"
MINOR_FAULTS, MAJOR_FAULTS = 7, 9
"""Which words of /proc/PID/stat, from the one after the name of the program on."""


@dataclass(frozen=True)
class Reading:
    """Since each began."""

    switches: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Thread -> voluntary and involuntary context switches."""
    faults: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Process -> minor and major page faults, including threads that ended."""


def read(pids: Iterable[int], proc: Path = PROC) -> Reading:
    """What ``pids`` and all their threads have now; those that end meanwhile are left out."""
    reading = Reading()
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = (proc / f"{pid}/stat").read_text().rpartition(")")[2].split()
            reading.faults[pid] = int(words[MINOR_FAULTS]), int(words[MAJOR_FAULTS])
        with contextlib.suppress(OSError):
            for thread in (proc / f"{pid}/task").iterdir():
                with contextlib.suppress(OSError, KeyError, ValueError):
                    status = dict(line.partition(":")[::2] for line in (thread / "status").read_text().splitlines())
                    reading.switches[int(thread.name)] = int(status[VOLUNTARY]), int(status[INVOLUNTARY])
    return reading


def between(before: Reading, after: Reading) -> ProcessCounts:
    """What was counted from ``before`` to ``after``: of what is there at the end, since it began where it is new."""
    voluntary, involuntary = _grown(before.switches, after.switches)
    minor, major = _grown(before.faults, after.faults)
    return ProcessCounts(
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        minor_faults=minor,
        major_faults=major,
    )


def _grown(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> tuple[int, int]:
    pairs = [(after[number], before.get(number, (0, 0))) for number in after]
    return sum(now[0] - then[0] for now, then in pairs), sum(now[1] - then[1] for now, then in pairs)
