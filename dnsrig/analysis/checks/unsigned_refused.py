"""What a primary answers to an AXFR that is not signed, where transfers are to be signed (TSIG, RFC 8945): it must not
give the zone.

Asked once, over TCP, after the trial has measured. What the secondary has it then got with a signature.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "a transfer that is not signed"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments.get("unsigned", {})
    if not (answer := told.get("answer")):
        return cannot_tell("nobody asked")
    return Seen("given" if answer == "NOERROR" else "refused", asked="refused", why=f"the primary answered {answer}")
