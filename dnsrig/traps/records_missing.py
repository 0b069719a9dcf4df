"""What came is not what the primary was given: it left records out, or made some of its own.

A server that answers sooner because it sends less looks fast. PowerDNS, for one, sends no RRSIG and no NSEC of a zone
that it was not told is signed (metadata PRESIGNED): of a signed zone of a registry nearly half of the records.

How it is told: the instrument counts the records of each transfer; the dataset says how many there are. Not where zones
changed meanwhile, where differences were sent, or where the primary is one of dnsrig's own, which makes its zones
itself.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 45
TITLE = "other records than those of the zones"
SOURCE = "measured: PowerDNS 5.1.5 sent 91,371 of the 163,271 records of a signed zone; its documentation, domain metadata, PRESIGNED"
WEIGHT = "invalidates"


def after(trial: Trial) -> Conclusion | None:
    told, spec = trial.transfer, trial.record.spec
    if not told or trial.record.outcome not in JUDGED or spec.next_dataset is not None or _makes_zones(trial):
        return None
    secondaries = int(told.get("secondaries", 1))
    if not told.get("done") == told.get("axfr") == secondaries * spec.dataset.zones:
        return None
    came, wanted = int(told["records"]), secondaries * spec.dataset.records
    if came == wanted:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{came:,} records came where the zones have {wanted:,}: {came / wanted:.1%}. The figure is that of other zones.",
        evidence={"records": came, "records_of_the_zones": wanted, "percent": round(100 * came / wanted, 2)},
        metrics=(trial.record.spec.main_metric, "records_per_s", "transferred_mb_per_s"),
        remedy="Do not compare it with servers that sent all. Transfer a zone by hand, see which types are missing, and which setting of the primary "
        "they are for.",
    )


def _makes_zones(trial: Trial) -> bool:
    hosts = trial.record.spec.hosts.values()
    return any(host.role == "primary" and host.server is not None and host.server.source == "engine" for host in hosts)
