"""An address of the stream is not one client but many, behind NAT or a forwarder.

In a replay they are a single client: they share one path to the server's threads, one TCP connection, and the server's
limits for each client (rate limits, concurrent queries). And a sample of the clients that contains this address
represents many times as many people as a sample without it.

The signs: an address sends many times as many queries as the median client, and for its number of queries it asks for
at least as many different names as all clients do. A single program that sends many queries mostly repeats the same
ones. The clients of a generated population are single clients, so the trap examines only captures.
"""

from __future__ import annotations

from dnsrig.runs import streamed
from dnsrig.runs.streamed import Heavy, Stream
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 60
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "many clients behind one address"
SOURCE = "S. M. Bellovin, A Technique for Counting NATted Hosts (2002)"
TIMES = 50
"""Least ratio to the median client: four of five clients send fewer than ten queries while the busiest send some
hundred (documentation of DNS Shotgun)."""
FEWEST_QUERIES = 200
"""Least number of queries of an address for which its names are meaningful."""
LEAST_SHARE = 0.02
"""Least share of all queries from such addresses: fewer hardly change a result."""
FEWEST_CLIENTS = 20
"""Least number of clients for which the median client is meaningful."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := streamed.of(trial)) is None:
        return None
    if stream.kind != "capture":
        return CLEAR
    if not stream.heaviest or not stream.queries:
        return cannot_tell("It is not known what the heaviest clients asked for.")
    if stream.clients < FEWEST_CLIENTS:
        return cannot_tell(
            f"{stream.clients} clients are too few to recognise an unusual one; {FEWEST_CLIENTS} are needed."
        )
    many = [heavy for heavy in stream.heaviest if is_many(heavy, stream)]
    share = sum(heavy.queries for heavy in many) / stream.queries
    if share < LEAST_SHARE:
        return CLEAR
    first, median = many[0], max(1, stream.spread["median"])
    more = len(many) == len(stream.heaviest)
    return Conclusion(
        "found",
        summary=f"{'At least ' if more else ''}{len(many)} of {stream.clients:,} addresses look like many clients each. The busiest sends "
        f"{first.queries:,} queries, {first.queries / median:,.0f} times as many as the median client, for "
        f"{first.questions:,} different questions. {'They send' if len(many) > 1 else 'It sends'} {share:.1%} of the queries.",
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
        remedy="Capture before NAT or the load balancer. Or treat that address as many clients: give each of its queries its own port "
        "(`--set options.port=fresh`, the default), and switch limits for each client off. It may also be one program that asks for "
        "random names: look at its queries.",
    )


def is_many(heavy: Heavy, stream: Stream) -> bool:
    """Whether an address looks like many clients. With more queries, a smaller share of them is for something new; so
    an address with many people behind it has at least the diversity of all clients."""
    often = heavy.queries >= max(FEWEST_QUERIES, TIMES * max(1, stream.spread["median"]))
    return often and heavy.diversity >= stream.diversity
