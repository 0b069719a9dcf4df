"""Share of the served zones that the configuration of the server under test does not contain: all with a catalog zone
(RFC 9432), no zone with static provisioning.

A member zone that is served but not configured can only come from the catalog zone, so the catalog zone was
transferred. Configured zones are counted in the server's configuration, or in its database, after the measurement.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "zones provisioned by the catalog"
UNIT = "% of served zones"


def look(trial: Trial) -> Seen:
    told = trial.record.instruments
    served = told.get("probe", told.get(f"probe-{trial.subject}", {})).get("seen")
    configured = told.get("configured", {}).get("zones")
    if configured is None or not served:
        return cannot_tell("it served no zone, or the zones in its configuration are not known")
    asked = trial.record.spec.transfer.provisioning
    share, why = 100 * max(0, served - configured) / served, f"its configuration contains {configured:,} zones"
    if asked == "catalog":
        return Seen(share, least=100.0, asked=asked, why=why)
    return Seen(share, most=0.0, asked=asked, why=why)
