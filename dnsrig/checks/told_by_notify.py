"""Number of NOTIFYs (RFC 1996) that reached the server under test and were followed by its question, for each change.
Without NOTIFY, no NOTIFY may arrive.

A packet socket on its host sees them during the measurement. A question is a query over UDP for the same zone, or data
to the primary over TCP, in the next five seconds. A primary may announce several changes of a zone together, so 50 % is
enough.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "changes announced by NOTIFY"
UNIT = "%"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    told, made = trial.record.instruments.get("told"), trial.record.instruments.get("propagation", {}).get("changes")
    if told is None or not made:
        return cannot_tell("no change was made, or the packets of the server under test were not recorded")
    if dropped := told.get("dropped"):
        return cannot_tell(f"{dropped:,} packets found no room in the recorder's buffer")
    notifies, followed = told["notifies"], told["followed"]
    if not trial.record.spec.transfer.notify:
        return Seen(100 * notifies / made, most=0.0, why=f"{notifies:,} NOTIFYs arrived for {made:,} changes")
    why = f"{notifies:,} NOTIFYs arrived for {made:,} changes, and a question followed {followed:,} of them"
    return Seen(100 * followed / made, least=LEAST_PERCENT, why=why)
