"""How long a primary took to load its zones."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.metrics.transfer import since_exec_s
from dnsrig.runs.trial import Trial


@metric(title="time to load all zones", unit="s", better="lower", order=10)
def load_time_s(trial: Trial) -> float | None:
    """Time from exec of the primary under test until it answered for the last of its zones with the expected serial, as
    seen by probe. None if the trial ended before that, or if the server under test is not a primary."""
    if trial.record.outcome not in ("done", "invalid") or trial.subject not in trial.hosts_as("primary"):
        return None
    return since_exec_s(trial, "last_seen_ns")
