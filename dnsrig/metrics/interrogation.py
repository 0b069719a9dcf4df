"""Number of conclusions of an interrogation."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


@metric(title="questions answered", unit="questions", better="neither", order=10)
def checks_answered(trial: Trial) -> float | None:
    """Number of questions of an interrogation that the primary's behaviour answers: yes, no or partly. A separate table
    shows the answers."""
    features = trial.record.instruments.get("interrogate", {}).get("features")
    return None if features is None else float(sum(feature["verdict"] != "cannot-tell" for feature in features))
