"""A few clients make most of the queries, so who they are decides the result.

Queries spread very unevenly over clients. Where one asks a tenth of everything, the hit ratio, the types and the rate
are its habits: a capture of another hour, or another share of the clients, has it or has it not, and is another
measurement.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell
from dnsrig.traps._replayed import replayed

ORDER = 60
TITLE = "a few clients make most of the queries"
SOURCE = (
    "Of a root server's clients 1 % make 24 % of the queries and 10 % make 59 %; documentation of DNS Shotgun: 1 % of a "
    "resolver's clients ask more than a hundred times"
)
LARGEST_SHARE = 0.1
"""Of the queries, by one client."""
HEAVIEST_SHARE = 0.5
"""By the heaviest 1 % of the clients: twice what is published."""
FEWEST_CLIENTS = 20
"""Of fewer each is heavy."""
FEWEST_FOR_PERCENT = 100
"""Of fewer, 1 % is one client."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := replayed(trial)) is None:
        return None
    if not stream.queries or not stream.clients:
        return cannot_tell("It is not known how the queries spread over the clients.")
    if stream.clients < FEWEST_CLIENTS:
        return cannot_tell(f"Of {stream.clients} clients each is heavy; {FEWEST_CLIENTS} are needed.")
    largest, heaviest = stream.spread["largest"], stream.spread["heaviest_1_percent"]
    one_percent = heaviest / stream.queries
    is_one = largest > LARGEST_SHARE * stream.queries
    if not is_one and (one_percent <= HEAVIEST_SHARE or stream.clients < FEWEST_FOR_PERCENT):
        return CLEAR
    who = f"one of {stream.clients:,} clients makes {largest / stream.queries:.1%} of the queries"
    kept = stream.kept_share < 1
    return Conclusion(
        "found",
        summary=f"{who.capitalize() if is_one else f'Of {stream.clients:,} clients the heaviest 1 % make {one_percent:.1%} of the queries'}"
        f"; the one in the middle asks {stream.spread['median']:,} times.",
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
        remedy=("Keep other clients (`--set stream.seed=...`) and see by how much the result moves. " if kept else "")
        + "Look at `clients.arrow`: where the heavy clients' latency differs from the others', say both.",
    )
