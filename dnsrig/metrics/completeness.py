"""Numbers of RRsets that servers answer otherwise than the zone files have them."""

from __future__ import annotations

from dnsrig.metrics import metric
from dnsrig.runs.trial import Trial


def _different(trial: Trial, comparison: str) -> float | None:
    """RRsets with another answer than the zone file has; None if not all were asked for."""
    summary = trial.record.instruments.get(comparison, {})
    return float(summary["rrsets_different"]) if summary.get("outcome") == "done" else None


@metric(title="RRsets that the secondary lost", unit="RRsets", better="lower", order=10)
def rrsets_lost(trial: Trial) -> float | None:
    """Number of RRsets of the zone files that the secondary, after its first transfer of all zones, answers otherwise
    than the files have them: records are lacking or extra, or there is no answer that can be read. RRsets that the
    primary does not answer either are among them. None unless all RRsets were asked for."""
    return _different(trial, "records-secondary")


@metric(title="RRsets that the primary lost", unit="RRsets", better="lower", order=11)
def rrsets_lost_at_primary(trial: Trial) -> float | None:
    """Number of RRsets of the zone files that the primary itself answers otherwise than the files have them, e.g.
    because it does not load them. None unless all RRsets were asked for."""
    return _different(trial, "records-primary")


@metric(title="RRsets that the secondary lost after an update", unit="RRsets", better="lower", order=12)
def rrsets_lost_updated(trial: Trial) -> float | None:
    """Number of RRsets of the next version of the zone files that the secondary answers otherwise than the files have
    them, after the primary has loaded that version. None without an update."""
    return _different(trial, "records-secondary-updated")
