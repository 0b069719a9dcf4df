"""The wall clock was set while a trial ran.

dnsrig's own times are monotonic and not affected, but a server's log is: across a step, times in the log cannot be
compared with other times. dnsrig reads the realtime and the monotonic clock together every 10 s and around each phase.
Slewing affects both alike, so only a step changes their difference: each change that is larger than the error of the
readings is a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from dnsrig.rundir import Anchor
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell

ORDER = 80
GROUP = "the machine and its clocks"
OUTCOMES = COMPARED
TITLE = "the wall clock was stepped during a trial"
SOURCE = (
    "clock_gettime(2): CLOCK_MONOTONIC is slewed by adjtime(3) and NTP as CLOCK_REALTIME is, but does not jump with it"
)
SLACK_NS = 1_000_000
"""Finer than the resolution of any server's log."""


@dataclass(frozen=True)
class Step:
    """The wall clock moved by ``size_ns`` somewhere between two readings."""

    size_ns: int
    before: Anchor
    after: Anchor


def after(trial: Trial) -> Conclusion | None:
    if len(trial.anchors) < 2:
        return cannot_tell("The clocks were not read twice, so there is nothing to compare.")
    found = steps(trial.anchors)
    if not found:
        return CLEAR
    largest = max(found, key=lambda step: abs(step.size_ns))
    zero_ns = trial.server.exec_ns if trial.server else trial.anchors[0].monotonic_ns
    size_s = largest.size_ns / 1e9
    earliest_s, latest_s = ((anchor.monotonic_ns - zero_ns) / 1e9 for anchor in (largest.before, largest.after))
    more = f", the largest of {len(found)} steps" if len(found) > 1 else ""
    return Conclusion(
        "found",
        summary=f"The wall clock was set by {size_s:+.3f} s between {earliest_s:.2f} and {latest_s:.2f} s after exec{more}: "
        "in servers' logs, times before and after the step cannot be compared.",
        evidence={
            "largest_step_s": round(size_s, 6),
            "earliest_s": round(earliest_s, 3),
            "latest_s": round(latest_s, 3),
            "steps": len(found),
        },
        remedy="Rely on probe's times, which are monotonic. Let the NTP client slew the clock, or set the clock before a run.",
    )


def steps(anchors: list[Anchor]) -> list[Step]:
    """The steps between neighbouring readings."""
    return [Step(_moved_ns(a, b), a, b) for a, b in pairwise(anchors) if abs(_moved_ns(a, b)) > _allowed_ns(a, b)]


def _moved_ns(before: Anchor, after: Anchor) -> int:
    """Change of realtime minus monotonic."""
    return (after.realtime_ns - after.monotonic_ns) - (before.realtime_ns - before.monotonic_ns)


def _allowed_ns(before: Anchor, after: Anchor) -> int:
    return before.error_ns + after.error_ns + SLACK_NS
