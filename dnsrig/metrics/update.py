"""Time that a new version of the zones takes to reach the secondary."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


@metric(title="time to the new version", unit="s", better="lower", order=10)
def update_time_s(trial: Trial) -> float | None:
    """Time from the command to load the new version of the zones until the secondary answered for the last zone with
    the new serial, as seen by probe."""
    record, phase = trial.record, trial.measure
    seen = record.instruments.get("probe", {}).get("last_seen_ns")
    if record.spec.main_metric != "update_time_s" or record.outcome not in ("done", "invalid"):
        return None
    if phase is None or seen is None:
        return None
    return (int(seen) - phase.start.monotonic_ns) / 1e9
