"""Share of the resumed TLS sessions with early data (0-RTT, RFC 8446 2.3) in which the server accepted it: at least
half.

If a server's tickets do not permit early data, clients send none. If the server rejects it, clients send the queries
again. In both cases they are as slow as clients without early data.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.transfers import FEWEST
from dnsrig.runs.trial import Trial

TITLE = "queries that the server accepted as early data"
UNIT = "% of resumed sessions"
LEAST_PERCENT = 50.0


def look(trial: Trial) -> Seen:
    found = [one.connections for one in trial.load.classes if one.early_data]
    resumed = sum(one.resumed for one in found)
    if resumed < FEWEST:
        return cannot_tell(f"{resumed} sessions of clients with early data were resumed, which is too few")
    rejected = sum(one.early_rejected for one in found)
    why = f"{rejected} were rejected" if rejected else "its tickets do not permit early data"
    return Seen(100 * sum(one.early_accepted for one in found) / resumed, least=LEAST_PERCENT, asked="taken", why=why)
