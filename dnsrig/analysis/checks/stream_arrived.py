"""Of the queries of a replayed stream, how many came to the server as they are in it: from the address of their client,
and the same message but for its id. A capture tells, in which encrypted queries do not show."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.metrics.replay import arrival
from dnsrig.analysis.read import Trial

TITLE = "queries that arrived byte by byte"
UNIT = "% of the stream's"
LEAST_PERCENT = 99.0
"""As many as must be sent at all (`rate`)."""


def look(trial: Trial) -> Seen:
    found = arrival(trial)
    if found is None or not found.visible:
        return cannot_tell("what arrived was not captured, or nothing of it can be seen")
    if found.dropped != 0:
        return cannot_tell("tcpdump missed packets, or did not say how many")
    why = f"{found.missing:,} did not arrive, {found.unknown:,} others did"
    return Seen(100 * (1 - found.missing / found.visible), least=LEAST_PERCENT, why=why)
