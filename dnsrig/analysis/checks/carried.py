"""How many bytes came over the link between the sites, for each record of the zones that arrived: by whatever carries
them they must have come this way.

A database may compress, and keeps an address in few bytes: four for a record are what no carrier was seen to stay
below.
"""

from __future__ import annotations

from dnsrig.analysis import replication
from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "bytes between the sites"
UNIT = "for each record that arrived"
LEAST = 4.0


def look(trial: Trial) -> Seen:
    rows, spec, told = replication.arrived(trial), trial.record.spec, trial.record.instruments
    zones = told.get("probe", {}).get("seen", told.get("transfer", {}).get("done"))
    if rows.is_empty() or not zones:
        return cannot_tell("nothing is known of the link, or no zone arrived")
    records = spec.dataset.records * zones / max(1, spec.dataset.zones)
    return Seen(int(rows["bytes"][-1]) / max(1.0, records), least=LEAST, asked=str(spec.options["carrier"]))
