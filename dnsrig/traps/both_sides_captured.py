"""The capture has both sides of a resolver, and what the resolver asked was replayed as if clients had asked it.

Taken on a resolver's host, a capture has its clients' queries and those that it sends itself, both to port 53.
`replay prepare` tells them apart by the server's address. Where it takes another server for the one whose clients are
wanted, or is told of both, upstream queries are in the stream: only cache misses, all from the one address of the
resolver, and for name servers as much as for what clients look for.

Two signs. A query is from an address that others ask in the same capture: a server's, not a client's. Or it lacks the
bit RD, which clients set and a resolver clears when it asks an authority; that one counts where the stream is replayed
to a resolver, as authorities are asked without it. A resolver that only forwards sets RD, and shows by its address
alone.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell
from dnsrig.traps._replayed import replayed

ORDER = 60
TITLE = "both sides of a resolver were captured"
SOURCE = "RFC 1034, 5.3.1 and RFC 1035, 4.1.1: stub resolvers ask for recursion, by RD"
WEIGHT = "invalidates"
LEAST_SHARE = 0.02
"""Of the queries, by either sign: fewer hardly move a result, and some programs of clients clear RD."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := replayed(trial)) is None:
        return None
    if stream.kind != "capture":
        return CLEAR
    messages = stream.accounting.get("messages", {})
    if "from_servers" not in messages or "recursion_desired" not in stream.holds or not stream.queries:
        return cannot_tell("It is not known who asked, or whether for recursion.")
    # What is kept may be cut or multiplied on its way into the stream.
    from_servers, kept = int(messages["from_servers"]), int(messages["kept"]) + int(messages.get("outside_cut", 0))
    to_resolver = trial.record.spec.hosts[trial.subject].role == "resolver"
    without_rd = stream.queries - int(stream.holds["recursion_desired"]) if to_resolver else 0
    told = []
    if from_servers > LEAST_SHARE * kept:
        told.append(f"{from_servers:,} of {kept:,} queries are from addresses that others ask in the same capture")
    if without_rd > LEAST_SHARE * stream.queries:
        told.append(f"{without_rd:,} of {stream.queries:,} queries do not ask for recursion")
    if not told:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"What a resolver asked is replayed as if its clients had: {', and '.join(told)}.",
        evidence={
            "from_servers": from_servers,
            "queries_kept": kept,
            "without_recursion_desired": without_rd,
            "queries": stream.queries,
            "servers": ", ".join(stream.made.get("servers") or []),
        },
        metrics=(trial.record.spec.main_metric, "cache_hits_percent", "upstream_a_query"),
        remedy='Name the address that clients ask, and it alone: `stream.server = "192.0.2.53"`. Or capture on the clients\' side only: '
        "`tcpdump … 'port 53 and host 192.0.2.53'`, where the resolver asks from another address.",
    )
