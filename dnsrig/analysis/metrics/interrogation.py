"""How much an interrogation found out."""

from __future__ import annotations

from dnsrig.analysis.metrics import metric
from dnsrig.analysis.read import Trial


@metric(title="questions answered", unit="questions", better="neither", order=10)
def checks_answered(trial: Trial) -> float | None:
    """Questions of an interrogation to which the primary's behaviour gave an answer: yes, no or partly. What the
    answers are stands in a table of its own."""
    features = trial.record.instruments.get("interrogate", {}).get("features")
    return None if features is None else float(sum(feature["verdict"] != "cannot-tell" for feature in features))
