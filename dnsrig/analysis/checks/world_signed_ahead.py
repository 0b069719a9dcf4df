"""Whether a simulated Internet had its signatures before it was asked for them.

A signature that it makes meanwhile takes about a millisecond with RSA (2,048 bits), some 13 µs with P-256, and a
resolver's client waits for it: then a part of the latency is the world's. With one in a hundred a signature is later by
at most 0.01 ms on average. A resolver uses 0.2 to 0.5 ms of CPU for a client's query
(docs/results/resolvers.md), so that is little; with more the world begins to count where authorities have no
distance.

The world makes what the questions of the stream do not lead to, and what found no room. For the first it helps to sign
fewer zones, for the second to give it more memory.
"""

from __future__ import annotations

from dnsrig.analysis.checks import Seen, cannot_tell
from dnsrig.analysis.read import Trial

TITLE = "signatures that the world made while it was asked for them"
UNIT = "%"
MOST_PERCENT = 1.0


def look(trial: Trial) -> Seen:
    signatures = trial.record.instruments.get("world", {}).get("signatures")
    if signatures is None:
        return cannot_tell("the world said no summary")
    given, made, forgotten = (signatures.get(name, 0) for name in ("given", "made", "forgotten"))
    host = trial.record.spec.world
    remedy = (
        f"{forgotten:,} found no room, so raise hosts.{host}.settings.signature-cache-mib"
        if forgotten
        else "the resolver asks for more than its clients' questions lead to, so sign fewer zones: signing.share in dataset.set"
    )
    return Seen(100 * made / given if given else 0.0, most=MOST_PERCENT, why=f"{made:,} of {given:,}; {remedy}")
