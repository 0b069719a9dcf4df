"""Zones that were transferred differ from the primary's data: records are lacking or changed, or some were added.

A server that is faster because it sends less looks fast. For example, PowerDNS sends no RRSIG and NSEC records of a
signed zone unless its metadata marks the zone as signed (PRESIGNED); in a registry's signed zone these are nearly half
of the records. Large records are lost more often than small ones: NSD up to 4.6.1 answers an AXFR of a TXT record of
20,000 bytes with empty messages.

How it is detected: if `probe records` asked the servers for every RRset, its differences from the zone files are the
evidence. Otherwise the instrument counts the records of each transfer and compares them with the dataset. It does not
examine trials in which zones changed, differences were sent, or the primary is one of dnsrig's own, which generates its
zones itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 45
GROUP = "zone transfers"
OUTCOMES = JUDGED
TITLE = "transfers lack records, or have extra ones"
SOURCE = "measured: PowerDNS 5.1.5 sent 91,371 of the 163,271 records of a signed zone; its documentation, domain metadata, PRESIGNED"
WEIGHT = "invalidates"
NAMED = 10
"""Number of RRsets that are named in the summary; all are in trial.json."""
COMPARED = {
    "records-primary": "the primary",
    "records-secondary": "the secondary",
    "records-primary-updated": "the primary after the update",
    "records-secondary-updated": "the secondary after the update",
}
"""Name of a comparison by `probe records` -> the server that was asked."""


def after(trial: Trial) -> Conclusion | None:
    asked = {name: trial.record.instruments[name] for name in COMPARED if name in trial.record.instruments}
    if asked:
        return _by_rrset(asked)
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


def _by_rrset(asked: Mapping[str, Mapping[str, Any]]) -> Conclusion:
    """From the summaries of `probe records`."""
    if all(summary["outcome"] == "done" and not summary["rrsets_different"] for summary in asked.values()):
        return CLEAR
    if not any(summary["rrsets_different"] for summary in asked.values()):
        return Conclusion("cannot-tell", "not all RRsets were asked for in time")
    sentences = [
        f"{COMPARED[name]} answers {summary['rrsets_different']:,} of {summary['rrsets']:,} RRsets otherwise than the zone "
        f"files: {_named(summary['differences'])}"
        for name, summary in asked.items()
        if summary["rrsets_different"]
    ]
    text = "; ".join(sentences)
    return Conclusion(
        "found",
        summary=f"{text[0].upper()}{text[1:]}.",
        evidence={
            f"rrsets_{name.removeprefix('records-')}": summary["rrsets_different"] for name, summary in asked.items()
        },
        metrics=("rrsets_lost", "rrsets_lost_at_primary", "rrsets_lost_updated"),
        remedy="Look for the names of these zones in the logs of both servers. `dnsrig transfer PRIMARY --zone ZONE` shows whether the primary "
        "sends them; all differences are in trial.json.",
    )


def _named(differences: list[Mapping[str, Any]]) -> str:
    told = [f"{found['owner']} {found['rtype']} ({_size(found)}): {verdict(found)}" for found in differences[:NAMED]]
    more = len(differences) - NAMED
    return ", ".join(told) + (f", and {more:,} more" if more > 0 else "")


def _size(found: Mapping[str, Any]) -> str:
    records = "1 record" if found["records"] == 1 else f"{found['records']:,} records"
    return f"{records}, {found['bytes']:,} bytes"


def verdict(found: Mapping[str, Any]) -> str:
    """The difference of an RRset, in words.

    >>> verdict({"verdict": "changed", "lacking": 2, "extra": 0})
    '2 records lacking, 0 extra'
    """
    if found["verdict"] == "changed":
        return f"{found['lacking']:,} records lacking, {found['extra']:,} extra"
    if found["verdict"] == "absent":
        return f"absent (RCODE {found['rcode']})"
    return {"truncated": "truncated", "no-answer": "no answer"}.get(str(found["verdict"]), "cannot be read")


def _makes_zones(trial: Trial) -> bool:
    hosts = trial.record.spec.hosts.values()
    return any(host.role == "primary" and host.server is not None and host.server.source == "engine" for host in hosts)
