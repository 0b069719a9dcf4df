"""How many NOTIFYs (RFC 1996) reached the server under test and were followed by its question, for each change; without
NOTIFY, that none came.

As a packet socket on its host saw them while the trial measured: a question is a query over UDP for the same zone, or
what it sends to the primary over TCP, in the five seconds after. A primary may tell of several changes of a zone at
once, so half of them are enough.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "changes told by NOTIFY"
UNIT = "%"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    told, made = trial.record.instruments.get("told"), trial.record.instruments.get("propagation", {}).get("changes")
    if told is None or not made:
        return cannot_tell("no change was made, or nothing watched the packets of the server under test")
    if dropped := told.get("dropped"):
        return cannot_tell(f"{dropped:,} packets found no room in the buffer of who watched")
    notifies, followed = told["notifies"], told["followed"]
    if not trial.record.spec.transfer.notify:
        return Seen(100 * notifies / made, most=0.0, why=f"{notifies:,} NOTIFYs came for {made:,} changes")
    why = f"{notifies:,} NOTIFYs came for {made:,} changes, and a question followed {followed:,} of them"
    return Seen(100 * followed / made, least=LEAST_PERCENT, why=why)
