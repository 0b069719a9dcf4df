"""A few clients send most of the queries, so they decide the result.

Queries are spread very unevenly over clients. If one client sends a tenth of all queries, its habits decide hit ratio,
query types and rate. A capture of another hour, or another part of the clients, may lack this client, and is then a
different measurement.
"""

from __future__ import annotations

from dnsrig.runs import streamed
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 60
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "a few clients send most of the queries"
SOURCE = (
    "1 % of a root server's clients send 24 % of its queries, and 10 % send 59 %; documentation of DNS Shotgun: 1 % of a "
    "resolver's clients send more than a hundred queries"
)
LARGEST_SHARE = 0.1
"""Largest share of the queries that one client may send."""
HEAVIEST_SHARE = 0.5
"""Largest share that the heaviest 1 % of the clients may send: twice the published share."""
FEWEST_CLIENTS = 20
"""With fewer clients, each of them is heavy."""
FEWEST_FOR_PERCENT = 100
"""With fewer clients, 1 % is a single client."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := streamed.of(trial)) is None:
        return None
    if not stream.queries or not stream.clients:
        return cannot_tell("It is not known how the queries are spread over the clients.")
    if stream.clients < FEWEST_CLIENTS:
        return cannot_tell(f"With only {stream.clients} clients each is heavy; {FEWEST_CLIENTS} are needed.")
    largest, heaviest = stream.spread["largest"], stream.spread["heaviest_1_percent"]
    one_percent = heaviest / stream.queries
    is_one = largest > LARGEST_SHARE * stream.queries
    if not is_one and (one_percent <= HEAVIEST_SHARE or stream.clients < FEWEST_FOR_PERCENT):
        return CLEAR
    who = f"one of {stream.clients:,} clients sends {largest / stream.queries:.1%} of the queries"
    kept = stream.kept_share < 1
    return Conclusion(
        "found",
        summary=f"{who.capitalize() if is_one else f'The heaviest 1 % of {stream.clients:,} clients send {one_percent:.1%} of the queries'}"
        f"; the median client sends {stream.spread['median']:,}.",
        evidence={
            "largest_client_percent": round(100 * largest / stream.queries, 1),
            "heaviest_1_percent_of_clients_percent": round(100 * one_percent, 1),
            "heaviest_10_percent_of_clients_percent": round(
                100 * stream.spread["heaviest_10_percent"] / stream.queries, 1
            ),
            "median_queries": stream.spread["median"],
            "clients": stream.clients,
            "kept_share_percent": round(100 * stream.kept_share, 1),
        },
        metrics=(trial.record.spec.main_metric,),
        remedy=("Keep other clients (`--set stream.seed=...`) and see how much the result changes. " if kept else "")
        + "Look at `clients.arrow`: if the latency of heavy clients differs from the latency of the others, state both.",
    )
