"""Nothing keeps the wall clock right.

Of no consequence for dnsrig's own times, which are monotonic and of one machine: so an unsynchronised clock by itself is told, and not
found. It misleads where times in logs are held against another machine's, and where the clock drifted during a trial by more
than the log's resolution hides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dnsrig.analysis.read import Run, Trial
from dnsrig.rundir import Manifest
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

ORDER = 80
TITLE = "the wall clock is not synchronised"
SOURCE = "adjtimex(2): STA_UNSYNC"
SMALLEST_DRIFT_S = 0.001
VISIBLE_SHARE = 0.5
"""Of the log's resolution: a drift below it cannot change what is read from the log."""


def before(manifest: Manifest, conditions: Mapping[str, Any]) -> Conclusion:
    synchronised = conditions.get("clock_synchronised")
    if synchronised:
        return CLEAR
    if synchronised is None:
        return cannot_tell("The kernel did not say whether its clock is synchronised.")
    return cannot_tell(
        "The kernel says that its clock is not synchronised (adjtimex: STA_UNSYNC), so how wrong it is nobody knows. Times within "
        "this run are monotonic and unaffected; do not hold its wall-clock times against another machine's."
    )


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """Of each variant, where the clock is not synchronised."""
    if run.manifest.conditions.get("clock_synchronised") is not False:
        return
    for variant in run.manifest.variants:
        judged = [_judge(trial) for trial in run.of_variant(variant.id)]
        drifted = [conclusion for conclusion in judged if conclusion.verdict == "found"]
        if judged:
            yield variant.id, max(drifted, key=lambda found: abs(float(found.evidence["drift_s"] or 0)), default=CLEAR)


def _judge(trial: Trial) -> Conclusion:
    log, drift_s = trial.log, _drift_s(trial)
    if log is None or abs(drift_s) <= max(SMALLEST_DRIFT_S, VISIBLE_SHARE * log.resolution_ns / 1e9):
        return CLEAR
    resolution_s = log.resolution_ns / 1e9
    return Conclusion(
        "found",
        summary=f"The wall clock, which nothing synchronises, moved by {drift_s:+.4f} s against the monotonic one during repeat "
        f"{trial.record.spec.repeat}; the {trial.subject}'s log has a resolution of {resolution_s:g} s.",
        evidence={
            "drift_s": round(drift_s, 6),
            "repeat": trial.record.spec.repeat,
            "log_resolution_s": resolution_s,
        },
        remedy="Run an NTP client, e.g. chrony; trust probe's times, which are monotonic.",
    )


def _drift_s(trial: Trial) -> float:
    """How far realtime went away from monotonic between the first and the last reading, beyond their error."""
    if len(trial.anchors) < 2:
        return 0.0
    first, last = trial.anchors[0], trial.anchors[-1]
    moved_ns = (last.realtime_ns - last.monotonic_ns) - (first.realtime_ns - first.monotonic_ns)
    error_ns = min(abs(moved_ns), first.error_ns + last.error_ns)
    return (moved_ns - error_ns if moved_ns > 0 else moved_ns + error_ns) / 1e9
