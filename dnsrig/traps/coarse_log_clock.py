"""A log's clock is too coarse for the time that is read from it.

A server that stamps its log to the second says "loaded at 12:40:32" of something that began at 12:40:32.646: read
naively, the zone was there 0.354 s before the server started. A difference between a log's time and any other clock
is known only to the log's resolution.
"""

from __future__ import annotations

from dnsrig.analysis.metrics.transfer import floor_ns
from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 80
TITLE = "the log's clock is too coarse for the time read from it"
SOURCE = "S1: P. Spacek, smallest zone: -0.354 s from a log with 1 s resolution (2024)"
LARGEST_SHARE = 0.1
"""A log whose resolution is at most this share of the time measured cannot mislead about it by more."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    log, time_s = trial.log, trial.time_s
    if record.outcome != "done" or time_s is None or not trial.is_cold_start or floor_ns(trial) is not None:
        return None  # the instrument has no log
    from_log_s = None if log is None else trial.since_exec_s(log.last_realtime_ns)
    if log is None or from_log_s is None:
        return cannot_tell(f"The log of the {trial.subject} has no line with a time for a finished transfer.")
    resolution_s = log.resolution_ns / 1e9
    if resolution_s <= LARGEST_SHARE * time_s:
        return CLEAR
    impossible = " (impossible)" if from_log_s < 0 else ""
    return Conclusion(
        "found",
        summary=f"The log's clock has {resolution_s:g} s resolution; what took {time_s:.3f} s reads as "
        f"{from_log_s:+.3f} s{impossible} in it, known only to ±{resolution_s:g} s.",
        evidence={
            "log_resolution_s": resolution_s,
            "time_from_log_s": round(from_log_s, 3),
            record.spec.main_metric: round(time_s, 6),
        },
        metrics=(record.spec.main_metric, "time_per_zone_ms"),
        remedy="Trust probe's time, which does not use the log; use the log only to see which zones were done.",
    )
