"""Bytes on the link between the sites, for each record of the zones that arrived: whatever carries the zones must use
this link.

A database may compress, and stores an address in few bytes. No carrier was observed to need fewer than four bytes for a
record.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import replication
from dnsrig.runs.trial import Trial

TITLE = "bytes between the sites"
UNIT = "for each record that arrived"
LEAST = 4.0


def look(trial: Trial) -> Seen:
    rows, spec, told = replication.arrived(trial), trial.record.spec, trial.record.instruments
    zones = told.get("probe", {}).get("seen", told.get("transfer", {}).get("done"))
    if rows.is_empty() or not zones:
        return cannot_tell("there are no samples of the link, or no zone arrived")
    records = spec.dataset.records * zones / max(1, spec.dataset.zones)
    return Seen(int(rows["bytes"][-1]) / max(1.0, records), least=LEAST, asked=str(spec.options["carrier"]))
