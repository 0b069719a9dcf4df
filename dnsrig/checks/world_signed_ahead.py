"""Whether a simulated Internet had its signatures before the resolver requested them.

A signature that is made on request takes about a millisecond with RSA (2,048 bits), about 13 µs with P-256, and a
resolver's client waits for it: then a part of the latency is the world's. If this concerns 1 % of the signatures, a
signature is at most 0.01 ms later on average. A resolver uses 0.2 to 0.5 ms of CPU for a client's query
(docs/results/resolvers.md), so that is little. With a larger share, the world begins to matter if authorities have no
distance.

The world makes signatures on request if the stream's questions do not lead to them, or if there was no room for them.
In the first case sign fewer zones, in the second give the world more memory.
"""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs.trial import Trial

TITLE = "signatures that the world made on request"
UNIT = "%"
MOST_PERCENT = 1.0


def look(trial: Trial) -> Seen:
    signatures = trial.record.instruments.get("world", {}).get("signatures")
    if signatures is None:
        return cannot_tell("the world wrote no summary")
    given, made, forgotten = (signatures.get(name, 0) for name in ("given", "made", "forgotten"))
    host = trial.record.spec.world
    remedy = (
        f"{forgotten:,} found no room, so raise hosts.{host}.settings.signature-cache-mib"
        if forgotten
        else "the resolver requests more than the stream's questions lead to, so sign fewer zones: signing.share in dataset.set"
    )
    return Seen(100 * made / given if given else 0.0, most=MOST_PERCENT, why=f"{made:,} of {given:,}; {remedy}")
