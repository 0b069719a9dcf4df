"""A secondary answered before its database had the zones, and its clients got SERVFAIL.

A new replica is empty until it has copied a snapshot of its original, and meanwhile answers queries like any database.
A secondary that reads from it starts too, answers every query, and returns SERVFAIL for zones that it cannot find. A
health check that accepts any answer takes it for ready; resolvers use another server or fail. The secondary recovers by
itself when it is notified of the zones, or when it tries again.
"""

from __future__ import annotations

from dnsrig.runs import replication
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

GROUP = "zone transfers"
OUTCOMES = JUDGED
TITLE = "the secondary answered SERVFAIL until its replica was in sync"
SOURCE = "measured: Knot DNS 3.5.8 with Redis 8.0.6 and Valkey 9.1.2"
WEIGHT = "explains"
SHORTEST_S = 0.1
"""Shorter times do not matter: no traffic would have arrived yet."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    if replication.REPLICA not in record.spec.hosts:
        return None
    told, probe = record.instruments.get(replication.REPLICA), record.instruments.get("probe")
    if told is None or probe is None or probe.get("first_answer_ns") is None or trial.exec_ns is None:
        return cannot_tell("It is not known when the secondary answered first, or when the replica had all zones.")
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
        f"did not have all zones. It answered {refused:,} of probe's queries with SERVFAIL.",
        evidence={**since, "too_early_s": round(too_early_s, 3), "servfail_answers": refused},
        metrics=(trial.record.spec.main_metric, "first_answer_s", "stored_s"),
        remedy="Start the secondary, or announce its address, when the replica reports `master_link_status:up`. Let health checks query a zone, "
        "and not accept any answer.",
    )
