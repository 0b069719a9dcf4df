"""Of the changes that were due on the primary while the trial measured, how many it accepted.

A primary that refuses dynamic updates or is too slow for them leaves its secondaries at rest. Four in five must be
accepted: what is measured is then still "while zones change at this rate".
"""

from __future__ import annotations

from dnsrig.analysis import changes
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "changes accepted by the primary"
UNIT = "% of those due"
LEAST_PERCENT = 80.0


def look(trial: Trial) -> Seen:
    made, due = changes.made(trial), changes.due(trial)
    if made is None or not due:
        return cannot_tell("there are no rows of changes (changes.arrow)")
    return Seen(
        min(100.0, 100 * made / due),
        least=LEAST_PERCENT,
        asked=float(trial.record.spec.options["changes_per_s"]),
        why=f"it accepted {made:,} of some {due:,.0f}",
        series=("changes.arrow/accepted_ns",),
    )
