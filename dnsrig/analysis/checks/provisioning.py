"""Of the zones that the server under test served, how many its own configuration does not name: all where a catalog
zone (RFC 9432) provisions them, and none where they are static.

A member that is served and not configured can only have come by the catalog zone, which was then transferred. What is
configured is counted in the server's configuration, or in its database, when the trial has measured.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "zones provisioned by the catalog"
UNIT = "% of those served"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments
    served = told.get("probe", told.get(f"probe-{trial.subject}", {})).get("seen")
    configured = told.get("configured", {}).get("zones")
    if configured is None or not served:
        return cannot_tell("no zone was seen on it, or nothing says what its configuration names")
    asked = trial.record.spec.transfer.provisioning
    share, why = 100 * max(0, served - configured) / served, f"{configured:,} zones stand in its configuration"
    if asked == "catalog":
        return Seen(share, least=100.0, asked=asked, why=why)
    return Seen(share, most=0.0, asked=asked, why=why)
