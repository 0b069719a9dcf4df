"""Servers answer RRsets otherwise than the zone files have them.

They do not load the RRsets, lose them in a transfer, cut them or change them.

A secondary that loses a record keeps the serial of the zone, so nobody sees it. Large records are lost more often than
small ones: NSD up to 4.6.1 answers an AXFR of a TXT record of 20,000 bytes with empty messages.

How it is detected: `probe records` asked the servers for every RRset, and compared the answers with the zone files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion

ORDER = 44
GROUP = "zone transfers"
OUTCOMES = JUDGED
TITLE = "RRsets were lost, cut or changed"
SOURCE = "RFC 5936, 6, zone integrity; measured with `dnsrig run large-records`"
WEIGHT = "explains"
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
    return _by_rrset(asked) if asked else None


def _by_rrset(asked: Mapping[str, Mapping[str, Any]]) -> Conclusion:
    """From the summaries of `probe records`."""
    if all(summary["outcome"] == "done" and not summary["rrsets_different"] for summary in asked.values()):
        return CLEAR
    if not any(summary["rrsets_different"] for summary in asked.values()):
        return Conclusion("cannot-tell", "not all RRsets were asked for in time")
    sentences = [
        f"{COMPARED[name]} answers {summary['rrsets_different']:,} of {summary['rrsets']:,} RRsets otherwise than the zone "
        f"files: {_named(summary)}"
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


def _named(summary: Mapping[str, Any]) -> str:
    """The largest of the RRsets that differ."""
    largest = sorted(summary["differences"], key=lambda found: -int(found["bytes"]))[:NAMED]
    told = [f"{found['owner']} {found['rtype']} ({_size(found)}): {verdict(found)}" for found in largest]
    more = summary["rrsets_different"] - len(told)
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
