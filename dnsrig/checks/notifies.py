"""Number of NOTIFYs (RFC 1996) that reached the secondaries, for each secondary. Without one, a secondary does not know
of the change.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "NOTIFYs received"
UNIT = "for each secondary"


def look(trial: Trial) -> Seen:
    notifies = trial.transfer.get("notifies")
    if notifies is None:
        return cannot_tell("the instrument that plays the secondaries wrote no summary")
    return Seen(notifies / int(trial.record.spec.options["secondaries"]), least=1.0)
