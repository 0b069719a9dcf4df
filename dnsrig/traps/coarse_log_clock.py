"""A log's clock is too coarse for the time that is read from it.

A server that stamps its log to the second says "loaded at 12:40:32" of something that began at 12:40:32.646: read
naively, the zone was there 0.354 s before the server started. A difference between a log's time and any other clock
is known only to the log's resolution.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.rundir import LogDrilldown, TrialRecord
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 80
TITLE = "the log's clock is too coarse for the time read from it"
SOURCE = "S1: P. Spacek, smallest zone: -0.354 s from a log with 1 s resolution (2024)"
LARGEST_SHARE = 0.1
"""A log whose resolution is at most this share of the time measured cannot mislead about it by more."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    log, time_s = record.logs.get("secondary"), record.metrics.get("transfer_time_s")
    if record.outcome != "done" or time_s is None:
        return None
    if log is None or log.last_realtime_ns is None:
        return cannot_tell("The secondary's log has no line with a time for a finished transfer.")
    resolution_s = log.resolution_ns / 1e9
    if resolution_s <= LARGEST_SHARE * time_s:
        return CLEAR
    from_log_s = _from_log_s(record, log)
    impossible = " (impossible)" if from_log_s < 0 else ""
    return Conclusion(
        "found",
        summary=f"The log's clock has {resolution_s:g} s resolution; what took {time_s:.3f} s reads as "
        f"{from_log_s:+.3f} s{impossible} in it, known only to ±{resolution_s:g} s.",
        evidence={
            "log_resolution_s": resolution_s,
            "time_from_log_s": round(from_log_s, 3),
            "transfer_time_s": round(time_s, 6),
        },
        metrics=(
            "transfer_time_s",
            "time_per_zone_ms",
        ),
        remedy="Trust probe's time, which does not use the log; use the log only to see which zones were done.",
    )


def _from_log_s(record: TrialRecord, log: LogDrilldown) -> float:
    """Last completion in the log minus exec, as someone would compute who takes the log at its word."""
    phase = record.phase("measure")
    assert phase is not None and log.last_realtime_ns is not None
    offset_ns = phase.start.realtime_ns - phase.start.monotonic_ns
    return (log.last_realtime_ns - (record.servers["secondary"].exec_ns + offset_ns)) / 1e9
