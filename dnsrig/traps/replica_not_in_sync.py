"""A secondary answered before its database had the zones, and those who asked got SERVFAIL.

A replica that starts is empty until it has taken a snapshot of its original, and answers queries meanwhile like any
database. A secondary that reads from it starts as well, answers every query, and says SERVFAIL for zones that it cannot
find. A check that asks only whether the server answers calls it ready; resolvers go elsewhere or fail. It recovers by
itself when it hears of the zones, or when it tries again.
"""

from __future__ import annotations

from dnsrig.analysis import replication
from dnsrig.analysis.read import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

TITLE = "the replica was not in sync yet: SERVFAIL until it was"
SOURCE = "measured: Knot DNS 3.5.8 with Redis 8.0.6 and Valkey 9.1.2"
WEIGHT = "explains"
SHORTEST_S = 0.1
"""Before so long nobody would have sent traffic there."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    if replication.REPLICA not in record.spec.hosts or record.outcome not in JUDGED:
        return None
    told, probe = record.instruments.get(replication.REPLICA), record.instruments.get("probe")
    if told is None or probe is None or probe.get("first_answer_ns") is None or trial.exec_ns is None:
        return cannot_tell("It is not known when the secondary answered first, or when the replica had everything.")
    stored_ns = told.get("stored_ns") or (trial.measure and trial.measure.end.monotonic_ns)
    refused = probe.get("answers", {}).get("servfail", 0)
    too_early_s = ((stored_ns or 0) - probe["first_answer_ns"]) / 1e9
    if too_early_s < SHORTEST_S or not refused:
        return CLEAR
    return _found(trial, too_early_s, refused)


def _found(trial: Trial, too_early_s: float, refused: int) -> Conclusion:
    told, probe, exec_ns = (
        trial.record.instruments[replication.REPLICA],
        trial.record.instruments["probe"],
        trial.exec_ns or 0,
    )
    since = {
        name: None if when is None else round((when - exec_ns) / 1e9, 3)
        for name, when in (
            ("first_answer_s", probe["first_answer_ns"]),
            ("first_zone_s", probe.get("first_seen_ns")),
            ("stored_s", told.get("stored_ns")),
        )
    }
    in_sync = "never in sync" if since["stored_s"] is None else f"in sync after {digits(since['stored_s'])} s"
    return Conclusion(
        "found",
        summary=f"The secondary answered after {digits(since['first_answer_s'] or 0.0)} s, but its database was {in_sync}: for {digits(too_early_s)} s it "
        f"was asked for zones that it did not all have. {refused:,} of probe's queries were answered SERVFAIL.",
        evidence={**since, "too_early_s": round(too_early_s, 3), "servfail_answers": refused},
        metrics=(trial.record.spec.main_metric, "first_answer_s", "stored_s"),
        remedy="Start the secondary, or announce its address, when the replica says `master_link_status:up`; let checks ask for a zone, not for any "
        "answer.",
    )
