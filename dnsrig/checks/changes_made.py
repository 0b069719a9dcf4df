"""Share of the changes that were due on the primary during the measurement that it accepted.

If a primary refuses dynamic updates or is too slow for them, its secondaries are at rest. At least 80 % must be
accepted: then the measurement is still one "while zones change at this rate".
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import changes
from dnsrig.runs.trial import Trial

TITLE = "changes accepted by the primary"
UNIT = "% of changes due"
LEAST_PERCENT = 80.0


def look(trial: Trial) -> Seen:
    made, due = changes.made(trial), changes.due(trial)
    if made is None or not due:
        return cannot_tell("changes.arrow has no rows")
    return Seen(
        min(100.0, 100 * made / due),
        least=LEAST_PERCENT,
        asked=float(trial.record.spec.options["changes_per_s"]),
        why=f"it accepted {made:,} of about {due:,.0f}",
        series=("changes.arrow/accepted_ns",),
    )
