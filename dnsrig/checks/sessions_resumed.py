"""Share of the TLS handshakes that could have resumed a session (RFC 8446, 2.2) and did: at least half if sessions
should be resumed, no session otherwise.

A handshake could resume if the same secondary, or the same client of a replay, already had an established connection.
If a server issues no tickets, the resumed case is the same as the new one, and the experiment would compare a thing
with itself.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.load_result import ClassConnections
from dnsrig.runs.transfers import FEWEST, handshakes_of
from dnsrig.runs.trial import Trial

TITLE = "TLS sessions resumed"
UNIT = "% of handshakes that could resume"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    if classes := trial.load.classes:
        return _replayed([one.connections for one in classes if one.resumption])
    if trial.connections.is_empty():
        return cannot_tell("connections.arrow has no rows")
    found = handshakes_of(trial.connections)
    if found.could_resume < FEWEST:
        return cannot_tell(f"{found.could_resume} handshakes could have resumed a session, too few to judge by")
    seen = 100 * (1 - found.could_resume_full / found.could_resume)
    if trial.record.spec.options["resumption"]:
        return Seen(seen, least=LEAST_PERCENT, asked="resumed")
    return Seen(seen, most=0.0, asked="new")


def _replayed(classes: list[ClassConnections]) -> Seen:
    could = sum(one.returning for one in classes)
    if could < FEWEST:
        return cannot_tell(f"{could} handshakes could have resumed a session, too few to judge by")
    resumed = sum(one.resumed for one in classes)
    return Seen(100 * resumed / could, least=LEAST_PERCENT, asked="resumed")
