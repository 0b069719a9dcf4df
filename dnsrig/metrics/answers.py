"""Numbers of queries that two servers answer differently."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


@metric(title="queries with different answers", unit="queries", better="lower", order=10)
def answers_different(trial: Trial) -> float | None:
    """Number of queries that the server under test answered differently than the server of the host ``reference``, also
    when both were asked again: one answer was missing or damaged, or had another rcode, other records, other flags or a
    TTL beyond the limit. None if answers were not compared."""
    summary = trial.record.instruments.get("compare-answers")
    return None if summary is None else float(summary["different"])


@metric(title="queries that neither server answered", unit="queries", better="lower", order=11)
def answers_from_neither(trial: Trial) -> float | None:
    """Number of queries that neither the server under test nor the server of the host ``reference`` answered in time,
    so that nothing could be compared. None if answers were not compared."""
    summary = trial.record.instruments.get("compare-answers")
    return None if summary is None else float(summary["unanswered"])
