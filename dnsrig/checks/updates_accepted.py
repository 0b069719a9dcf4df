"""Share of the changes sent as dynamic updates (RFC 2136) that the primary accepted. It must accept all, because the
trial waits for each.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "updates accepted by the primary"
UNIT = "% of updates sent"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("propagation", {})
    if not (changes := told.get("changes")):
        return cannot_tell("no change was sent")
    lost = told.get("refused", 0) + told.get("accept_timeouts", 0)
    return Seen(100 * (changes - lost) / changes, least=100.0, why=f"{lost} were not accepted")
