"""The capture contains both sides of a resolver, and the resolver's own queries were replayed as if clients had sent
them.

A capture on a resolver's host contains the queries of its clients and those that it sends itself, both to port 53.
`replay prepare` separates them by the server's address. If it takes the wrong address for the resolver, or is given
both, the stream contains upstream queries: only cache misses, all from the resolver's one address, and for the names of
name servers as often as for the names that clients look up.

There are two signs. First, a query comes from an address that others query in the same capture: it is a server's, not a
client's. Second, a query lacks the RD bit, which clients set and a resolver clears when it queries an authority. The
second sign counts only if the stream is replayed to a resolver, as queries to authorities lack RD anyway. A resolver
that only forwards sets RD, so only its address reveals it.
"""

from __future__ import annotations

from dnsrig.runs import streamed
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 60
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "both sides of a resolver were captured"
SOURCE = "RFC 1034, 5.3.1 and RFC 1035, 4.1.1: stub resolvers ask for recursion, by RD"
WEIGHT = "invalidates"
LEAST_SHARE = 0.02
"""Least share of the queries with either sign: fewer hardly change a result, and some client programs clear RD."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := streamed.of(trial)) is None:
        return None
    if stream.kind != "capture":
        return CLEAR
    messages = stream.accounting.get("messages", {})
    if "from_servers" not in messages or "recursion_desired" not in stream.holds or not stream.queries:
        return cannot_tell("It is not known which addresses sent the queries, or whether they asked for recursion.")
    # Kept queries may be cut or multiplied on their way into the stream.
    from_servers, kept = int(messages["from_servers"]), int(messages["kept"]) + int(messages.get("outside_cut", 0))
    to_resolver = trial.record.spec.hosts[trial.subject].role == "resolver"
    without_rd = stream.queries - int(stream.holds["recursion_desired"]) if to_resolver else 0
    told = []
    if from_servers > LEAST_SHARE * kept:
        told.append(f"{from_servers:,} of {kept:,} queries are from addresses that others query in the same capture")
    if without_rd > LEAST_SHARE * stream.queries:
        told.append(f"{without_rd:,} of {stream.queries:,} queries do not ask for recursion")
    if not told:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"Queries of a resolver are replayed as if its clients had sent them: {', and '.join(told)}.",
        evidence={
            "from_servers": from_servers,
            "queries_kept": kept,
            "without_recursion_desired": without_rd,
            "queries": stream.queries,
            "servers": ", ".join(stream.made.get("servers") or []),
        },
        metrics=(trial.record.spec.main_metric, "cache_hits_percent", "upstream_a_query"),
        remedy='Set only the address that clients send their queries to: `stream.server = "192.0.2.53"`. Or capture only on the clients\' side: '
        "`tcpdump … 'port 53 and host 192.0.2.53'`, if the resolver sends its own queries from another address.",
    )
