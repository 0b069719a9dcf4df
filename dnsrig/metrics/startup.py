"""Start-up time of a server that already has its zones."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.metrics.transfer import since_exec_s
from dnsrig.runs.trial import Trial


@metric(title="time to start", unit="s", better="lower", order=10)
def startup_time_s(trial: Trial) -> float | None:
    """Time from exec of a server that already has its zones, in files or stored before it was stopped, until it
    answered for the last of them with the expected serial, as seen by probe. None if the trial ended before that."""
    if trial.record.spec.main_metric != "startup_time_s" or trial.record.outcome not in ("done", "invalid"):
        return None
    return since_exec_s(trial, "last_seen_ns")
