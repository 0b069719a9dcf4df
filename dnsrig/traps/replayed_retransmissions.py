"""Repeated queries of clients were replayed, although this server had answered the first ones.

A client repeats a query when no answer came in time: a packet was lost, or the captured server was slow. A replay that
sends these queries as captured asks twice, although the server answers at once. The server gets a rate that its clients
would not have produced, and answers from its cache that no client would have asked for.
"""

from __future__ import annotations

from dnsrig.runs import streamed
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 60
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "clients' repeated queries were replayed although answered"
SOURCE = "RFC 1035 §4.2.1; BIND's own count of duplicate queries in 36.8 G queries of a resolver's clients is 0.8 %"
SHARE = 0.02
"""Largest share of the queries: more than twice the usual one."""
ANSWERED_SHARE = 0.9
"""Least share of answered queries of the replay: a server that answers fewer would also get repeated queries."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := streamed.of(trial)) is None:
        return None
    if trial.record.spec.options.get("retransmissions") == "off":
        return CLEAR
    if not stream.queries or not trial.load.sent:
        return cannot_tell("It is not known how many queries of the stream are repeated ones.")
    share, answered = stream.retransmissions / stream.queries, trial.load.answered / trial.load.sent
    if share <= SHARE or answered < ANSWERED_SHARE:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{stream.retransmissions:,} of {stream.queries:,} queries of the stream ({share:.1%}) are repeated queries of clients. "
        f"They were replayed, although the server answered {answered:.1%} of its queries.",
        evidence={
            "retransmissions": stream.retransmissions,
            "queries": stream.queries,
            "retransmissions_percent": round(100 * share, 2),
            "answered_percent": round(100 * answered, 2),
        },
        metrics=(trial.record.spec.main_metric, "answered_qps"),
        remedy="Leave them out: `--set options.retransmissions=off`.",
    )
