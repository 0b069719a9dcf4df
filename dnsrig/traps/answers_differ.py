"""Two servers with the same zones answer some queries differently.

Of two servers, the one that leaves records out, or answers with another rcode, may only be faster because it does less.

How it is detected: `compare-answers` asked both servers the same queries, compared the answers, and asked once again
where they differed.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 46
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "two servers do not answer alike"
SOURCE = "respdiff of CZ.NIC compares answers of resolvers in this way; measured with `dnsrig bench --compare-answers`"
WEIGHT = "explains"
NAMED = 3
"""Number of queries that the summary names; the first hundred are in trial.json."""
FAILURES = ("SERVFAIL", "REFUSED", "NOTIMP", "FORMERR", "NOTAUTH")
FAILED_SHARE = 0.01
"""Share of the queries from which equal failures show nothing about the servers' data."""
KINDS = {
    "missing": "no answer from one server",
    "damaged": "records that cannot be read",
    "rcode": "another rcode",
    "rrset": "other records",
    "flags": "other flags",
    "ttl": "another TTL",
}


def after(trial: Trial) -> Conclusion | None:
    summary = trial.record.instruments.get("compare-answers")
    if summary is None:
        return None
    if not (different := int(summary["different"])):
        if unanswered := int(summary["unanswered"]):
            return Conclusion(
                "cannot-tell", f"neither server answered {unanswered:,} of {summary['queries']:,} queries"
            )
        refused = {name: count for name, count in summary.get("rcodes", {}).items() if name in FAILURES}
        if sum(refused.values()) > FAILED_SHARE * summary["queries"]:
            told = ", ".join(f"{count:,} with {name}" for name, count in refused.items())
            return cannot_tell(f"Both servers answered alike, but {told}: they may not serve what was asked.")
        return CLEAR
    kinds = {kind: count for kind, count in summary["differences"].items() if count}
    by_kind = ", ".join(f"{count:,} with {KINDS.get(kind, kind)}" for kind, count in kinds.items())
    named = "; ".join(
        f"{each['query']}: {each['answers'][0]} | {each['answers'][1]}" for each in summary["examples"][:NAMED]
    )
    more = f", and {different - NAMED:,} more" if different > NAMED else ""
    return Conclusion(
        "found",
        summary=f"Of {summary['queries']:,} queries, {different:,} have different answers: {by_kind}. The reference is named first: {named}{more}.",
        evidence={"queries": summary["queries"], "different": different, **kinds},
        metrics=("answers_different",),
        remedy="Ask both servers for one of these names by hand. The first hundred are in trial.json, with both answers.",
    )
