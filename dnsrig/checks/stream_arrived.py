"""Share of a replayed stream's queries that reached the server unchanged: from their client's address, and identical
except for the message id. A capture shows this, except for encrypted queries.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.metrics.replay import arrival
from dnsrig.runs.trial import Trial

TITLE = "queries that arrived unchanged"
UNIT = "% of the stream's queries"
LEAST_PERCENT = 99.0
"""Equal to the share that must be sent (`rate`)."""


def look(trial: Trial) -> Seen:
    found = arrival(trial)
    if found is None or not found.visible:
        return cannot_tell("arriving queries were not captured, or are encrypted")
    if found.dropped != 0:
        return cannot_tell("tcpdump missed packets, or did not report how many")
    why = f"{found.missing:,} did not arrive, {found.unknown:,} unknown ones did"
    return Seen(100 * (1 - found.missing / found.visible), least=LEAST_PERCENT, why=why)
