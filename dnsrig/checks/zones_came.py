"""Bytes from the primaries during the measurement, for each record of the zones that arrived.

A record takes at least sixteen bytes in a transfer with name compression, and much more if every zone is a separate
transfer. With fewer than eight bytes, the data did not come over these links in this time: the secondary had it before.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "bytes from the primaries"
UNIT = "for each record that arrived"
LEAST = 8.0


def look(trial: Trial) -> Seen:
    spec, told = trial.record.spec, trial.record.instruments
    came = trial.links_growth(spec.primaries, "rx_bytes")
    probe, transfer = told.get("probe", {}), told.get("transfer", {})
    zones = probe.get("seen", transfer.get("done"))
    if zones is None or came is None:
        return cannot_tell(
            "there are no samples of the links to the primaries, or the arrival of zones was not observed"
        )
    if not zones:
        return cannot_tell("no zone arrived")
    records = spec.dataset.records * zones / max(1, spec.dataset.zones)
    series = tuple(f"{trial.subject}/{spec.interface(trial.subject, primary)}/rx_bytes" for primary in spec.primaries)
    return Seen(came / max(1.0, records), least=LEAST, series=series)
