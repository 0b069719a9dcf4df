"""The primary's answer to an unsigned AXFR when transfers must be signed (TSIG, RFC 8945): it must not send the zone.

The check asks once, over TCP, after the measurement. If the primary refuses, the secondary got its zones with a
signature.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "unsigned transfer"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("unsigned", {})
    if not (answer := told.get("answer")):
        return cannot_tell("no unsigned transfer was requested")
    return Seen("sent" if answer == "NOERROR" else "refused", asked="refused", why=f"the primary answered {answer}")
