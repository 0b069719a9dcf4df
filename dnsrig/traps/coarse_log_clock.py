"""A log's clock is too coarse for the time that is read from it.

A server whose log has a resolution of one second logs "loaded at 12:40:32" for a start at 12:40:32.646. Read literally,
the zone was there 0.354 s before the server started. A difference between a time in a log and another clock is known
only to the log's resolution.
"""

from __future__ import annotations

from dnsrig.metrics.transfer import floor_ns
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 80
GROUP = "the machine and its clocks"
WEIGHT = "explains"
TITLE = "the log's clock is too coarse for the measured time"
SOURCE = "S1: P. Spacek, smallest zone: -0.354 s from a log with 1 s resolution (2024)"
LARGEST_SHARE = 0.1
"""Largest share of the measured time that the log's resolution may have."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    log, time_s = trial.log, trial.time_s
    if record.outcome != "done" or time_s is None or not trial.is_cold_start or floor_ns(trial) is not None:
        return None  # the instrument has no log
    from_log_s = None if log is None else trial.since_exec_s(log.last_realtime_ns)
    if log is None or from_log_s is None:
        return cannot_tell(f"The log of the {trial.subject} has no line with the time of a finished transfer.")
    resolution_s = log.resolution_ns / 1e9
    if resolution_s <= LARGEST_SHARE * time_s:
        return CLEAR
    impossible = " (impossible)" if from_log_s < 0 else ""
    return Conclusion(
        "found",
        summary=f"The log's clock has a resolution of {resolution_s:g} s: a time of {time_s:.3f} s is {from_log_s:+.3f} s{impossible} according "
        f"to the log, which is accurate only to ±{resolution_s:g} s.",
        evidence={
            "log_resolution_s": resolution_s,
            "time_from_log_s": round(from_log_s, 3),
            record.spec.main_metric: round(time_s, 6),
        },
        metrics=(record.spec.main_metric, "time_per_zone_ms"),
        remedy="Rely on probe's time, which does not use the log. Use the log only to see which zones were done.",
    )
