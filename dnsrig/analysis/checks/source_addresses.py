"""From how many of its addresses the server under test had connections to its primaries, as its kernel lists them at
the end of `measure`."""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "addresses that zones were asked from"


def look(trial: Trial) -> Seen:
    listed = trial.record.instruments.get("connections", {}).get("hosts", {}).get(trial.subject, {})
    if not listed.get("ports"):
        return cannot_tell("no connection was listed any more at the end")
    asked = len(trial.record.spec.hosts[trial.subject].source_addresses)
    return Seen(int(listed.get("sources", 0)), least=asked, asked=asked)
