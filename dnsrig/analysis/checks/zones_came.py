"""How many bytes came from the primaries while the trial measured, for each record of the zones that were seen to
arrive.

A record takes sixteen bytes and more in a transfer, with its name compressed, and much more where every zone is a
transfer of its own. Less than eight did not come over these links in this time: the secondary had them before.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "bytes from the primaries"
UNIT = "for each record that arrived"
LEAST = 8.0


def look(trial: Trial) -> Seen:
    spec, told = trial.record.spec, trial.record.instruments
    came = trial.links_growth(spec.primaries, "rx_bytes")
    probe, transfer = told.get("probe", {}), told.get("transfer", {})
    zones = probe.get("seen", transfer.get("done"))
    if zones is None or came is None:
        return cannot_tell("there are no samples of the links to the primaries, or nobody saw the zones arrive")
    if not zones:
        return cannot_tell("no zone arrived")
    records = spec.dataset.records * zones / max(1, spec.dataset.zones)
    series = tuple(f"{trial.subject}/{spec.interface(trial.subject, primary)}/rx_bytes" for primary in spec.primaries)
    return Seen(came / max(1.0, records), least=LEAST, series=series)
