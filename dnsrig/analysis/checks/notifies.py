"""How many NOTIFYs (RFC 1996) reached the secondaries, for each of them: without one, a secondary does not know of the
change."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "NOTIFYs received"
UNIT = "for a secondary"


def look(trial: Trial) -> Seen:
    notifies = trial.transfer.get("notifies")
    if notifies is None:
        return cannot_tell("the instrument in the secondaries' place said no summary")
    return Seen(notifies / int(trial.record.spec.options["secondaries"]), least=1.0)
