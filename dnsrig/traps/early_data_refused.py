"""Queries left as early data (0-RTT), and the server refused it, so that they were sent again.

A ticket that permits early data is no promise (RFC 8446, 4.2.10): a server may refuse it because the ticket looks too
old, because another process issued it, or because it has seen the ticket before. The client then sends the queries
again when the handshake is done. So the case with early data is the same as the resumed one, and costs more bytes.

The trap counts the queries that were sent twice. If the server's tickets permit no early data, nothing is sent twice,
and the manipulation check `early-data` fails instead.
"""

from __future__ import annotations

from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, of_servers

ORDER = 43
GROUP = "limits of servers and hosts"
OUTCOMES = JUDGED
TITLE = "early data was refused and sent again"
SOURCE = "RFC 8446, 4.2.10 and 8: early data may be refused, and a copy of a first flight asks again"
WEIGHT = "explains"
SMALLEST_SHARE = 0.1
"""Smallest share of the early queries that were refused. Some are always refused, e.g. around a new ticket key."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    made = [each.connections for each in load.classes] or [load.connections]
    accepted, rejected = sum(each.early_accepted for each in made), sum(each.early_rejected for each in made)
    if not accepted + rejected:
        return None
    share = rejected / (accepted + rejected)
    if share < SMALLEST_SHARE:
        return CLEAR
    setting = of_servers(trial, "early-data-refused", [trial.subject])
    return Conclusion(
        "found",
        summary=f"The server refused {rejected:,} of the {accepted + rejected:,} queries that left as early data "
        f"({share:.0%}): they were sent again after the handshake.",
        evidence={"early_accepted": accepted, "early_rejected": rejected, "refused_percent": round(100 * share, 1)},
        metrics=(trial.record.spec.main_metric, "handshakes_per_s", "early_repeated_percent", "p50_ms"),
        remedy=f"Let the server accept early data{setting}, and share its ticket keys among its processes; or leave "
        "`early_data` out, which saves the bytes that are sent twice.",
    )
