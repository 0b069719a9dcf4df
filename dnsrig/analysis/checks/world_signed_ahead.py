"""Whether a simulated Internet had its signatures before it was asked for them.

One that it makes meanwhile takes up to a millisecond (RSA), for which a resolver's client waits: then a part of the
latency is the world's. It makes what it does not expect, and what found no room (`signature-cache-mib`).
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "signatures that the world made while it was asked for them"
UNIT = "%"
MOST_PERCENT = 1.0


def look(trial: Trial) -> Seen:
    signatures = trial.record.instruments.get("world", {}).get("signatures")
    if signatures is None:
        return cannot_tell("the world said no summary")
    given, made = signatures["given"], signatures["made"]
    return Seen(100 * made / given if given else 0.0, most=MOST_PERCENT, why=f"{made:,} of {given:,}")
