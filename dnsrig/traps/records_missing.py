"""The transferred zones differ from the primary's data: the primary left records out, or added some.

A server that is faster because it sends less looks fast. For example, PowerDNS sends no RRSIG and NSEC records of a
signed zone unless its metadata marks the zone as signed (PRESIGNED); in a registry's signed zone these are nearly half
of the records.

How it is detected: the instrument counts the records of each transfer and compares them with the dataset. It does not
examine trials in which zones changed, differences were sent, or the primary is one of dnsrig's own, which generates its
zones itself.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 45
GROUP = "zone transfers"
OUTCOMES = JUDGED
TITLE = "transfers lack records, or have extra ones"
SOURCE = "measured: PowerDNS 5.1.5 sent 91,371 of the 163,271 records of a signed zone; its documentation, domain metadata, PRESIGNED"
WEIGHT = "invalidates"


def after(trial: Trial) -> Conclusion | None:
    told, spec = trial.transfer, trial.record.spec
    if not told or spec.next_dataset is not None or _makes_zones(trial):
        return None
    secondaries = int(told.get("secondaries", 1))
    if not told.get("done") == told.get("axfr") == secondaries * spec.dataset.zones:
        return None
    came, wanted = int(told["records"]), secondaries * spec.dataset.records
    if came == wanted:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{came:,} records arrived, but the zones have {wanted:,}: {came / wanted:.1%}. The figure describes different zones.",
        evidence={"records": came, "records_of_the_zones": wanted, "percent": round(100 * came / wanted, 2)},
        metrics=(trial.record.spec.main_metric, "records_per_s", "transferred_mb_per_s"),
        remedy="Do not compare it with servers that sent all records. Transfer a zone by hand, and find out which types are missing and which "
        "setting of the primary controls them.",
    )


def _makes_zones(trial: Trial) -> bool:
    hosts = trial.record.spec.hosts.values()
    return any(host.role == "primary" and host.server is not None and host.server.source == "engine" for host in hosts)
