"""An address of the stream is not one client but many, behind NAT or a forwarder.

Replayed, all of them are one client: they share one path to the server's threads, one TCP connection, and whatever the
server allows a client (rate limits, queries at a time). And a share of the clients that has that address has many
times as many people as one without.

The signs: one address asks many times as often as the one in the middle, and asks for as many different names for its
number of queries as all clients together do. A single program that asks much mostly asks the same again. Clients of a
population are made one by one, so the trap is for captures.
"""

from __future__ import annotations

from dnsrig.analysis.read import Trial
from dnsrig.analysis.streamed import Heavy, Stream
from dnsrig.traps import CLEAR, Conclusion, cannot_tell
from dnsrig.traps._replayed import replayed

ORDER = 60
TITLE = "many clients behind one address"
SOURCE = "S. M. Bellovin, A Technique for Counting NATted Hosts (2002)"
TIMES = 50
"""As often as the client in the middle: four of five clients ask less than ten times where the busiest ask some hundred
times (documentation of DNS Shotgun)."""
FEWEST_QUERIES = 200
"""Of an address, from which its names say something."""
LEAST_SHARE = 0.02
"""Of all queries, by such addresses together: fewer hardly move a result."""
FEWEST_CLIENTS = 20
"""Of fewer the one in the middle says little."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := replayed(trial)) is None:
        return None
    if stream.kind != "capture":
        return CLEAR
    if not stream.heaviest or not stream.queries:
        return cannot_tell("It is not known what the heaviest clients asked for.")
    if stream.clients < FEWEST_CLIENTS:
        return cannot_tell(f"{stream.clients} clients are too few to tell an unusual one; {FEWEST_CLIENTS} are needed.")
    many = [heavy for heavy in stream.heaviest if is_many(heavy, stream)]
    share = sum(heavy.queries for heavy in many) / stream.queries
    if share < LEAST_SHARE:
        return CLEAR
    first, median = many[0], max(1, stream.spread["median"])
    more = len(many) == len(stream.heaviest)
    return Conclusion(
        "found",
        summary=f"{'At least ' if more else ''}{len(many)} of {stream.clients:,} addresses ask as many clients do: the busiest "
        f"{first.queries:,} times, {first.queries / median:,.0f} times as often as the one in the middle, for "
        f"{first.questions:,} different questions. {'They make' if len(many) > 1 else 'It makes'} {share:.1%} of the queries.",
        evidence={
            "addresses": len(many),
            "queries": first.queries,
            "questions": first.questions,
            "times_the_median": round(first.queries / median, 1),
            "diversity": round(first.diversity, 3),
            "diversity_of_all": round(stream.diversity, 3),
            "share_percent": round(100 * share, 1),
        },
        metrics=(trial.record.spec.main_metric,),
        remedy="Capture before NAT or the load balancer, or count that address as many: let each of its queries have a port of its own "
        "(`--set options.port=fresh`, the default), and do not compare with a limit for one client on. It may also be one program "
        "that asks for random names: look at what it asks.",
    )


def is_many(heavy: Heavy, stream: Stream) -> bool:
    """The more queries, the fewer of them are for something new; so many people behind one address ask for no fewer
    different things than all clients do, a query."""
    often = heavy.queries >= max(FEWEST_QUERIES, TIMES * max(1, stream.spread["median"]))
    return often and heavy.diversity >= stream.diversity
