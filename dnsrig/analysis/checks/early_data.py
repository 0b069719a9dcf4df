"""Of the TLS sessions that were resumed and to have early data (0-RTT, RFC 8446 2.3), in how many the server took it:
at least half.

A server that permits none in its tickets is never sent any, and one that rejects it has the queries sent again: either
makes the clients as slow as those without.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.handshakes import FEWEST
from dnsrig.analysis.read import Trial

TITLE = "queries that the server took as early data"
UNIT = "% of the sessions resumed"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    found = [one.connections for one in trial.load.classes if one.early_data]
    resumed = sum(one.resumed for one in found)
    if resumed < FEWEST:
        return cannot_tell(f"{resumed} sessions of clients with early data were resumed, too few to judge by")
    rejected = sum(one.early_rejected for one in found)
    why = f"{rejected} were rejected" if rejected else "its tickets permit none"
    return Seen(100 * sum(one.early_accepted for one in found) / resumed, least=LEAST_PERCENT, asked="taken", why=why)
