"""Share of the zones that were in the database before the far site started. Zones that are not in it cannot be read
from it.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "zones in the database"
UNIT = "%"


def look(trial: Trial) -> Seen:
    zones = trial.record.instruments.get("database", {}).get("zones")
    if zones is None:
        return cannot_tell("the database was not examined")
    server = trial.record.spec.hosts["database"].server
    return Seen(100 * zones / trial.record.spec.dataset.zones, least=100.0, asked=server.name if server else None)
