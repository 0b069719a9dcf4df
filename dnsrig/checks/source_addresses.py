"""Number of its addresses from which the server under test had connections to its primaries, from its kernel's list at
the end of `measure`.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "source addresses of requests for zones"


def look(trial: Trial) -> Seen:
    listed = trial.record.instruments.get("connections", {}).get("hosts", {}).get(trial.subject, {})
    if not listed.get("ports"):
        return cannot_tell("no connection was listed at the end")
    asked = len(trial.record.spec.hosts[trial.subject].source_addresses)
    return Seen(int(listed.get("sources", 0)), least=asked, asked=asked)
