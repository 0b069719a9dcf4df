"""A share of the clients shares fewer names, so a resolver's cache answers less of what they ask.

A replay that keeps a tenth of the clients keeps a tenth of the queries, and more than a tenth of the names. The hit
ratio falls, and with it everything that depends on it: a resolver is then asked to resolve more often, for a query,
than it would be by all of its clients.

How much is told by the clients that were kept: half of them have a hit ratio, all of them a higher one, and twice as
many would gain no more than that. `replay describe` deals the clients out to sixteen groups and counts what a cache of
any size, that forgets nothing, would have answered of one, two, four, eight and all of them; groups put together in
several ways give the spread.

Where single queries were left out, nothing tells how much: what a client asks again is gone with the rest
(docs/results/resolvers.md has what came of it).
"""

from __future__ import annotations

import math

from dnsrig.analysis.read import Trial
from dnsrig.analysis.streamed import HitRatio, Stream
from dnsrig.traps import CLEAR, Conclusion, cannot_tell
from dnsrig.traps._replayed import replayed

ORDER = 60
TITLE = "fewer clients, and another hit ratio"
SOURCE = "J. Jung et al., DNS Performance and the Effectiveness of Caching (2002): hit ratio by the number of clients that share a cache"
LARGEST = 0.01
"""Change of the hit ratio: of 90 %, it is a tenth more queries that have to be resolved."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := replayed(trial)) is None:
        return None
    if stream.kept_queries_share < 1:
        return _single(trial, stream)
    if stream.kept_share >= 1:
        return CLEAR
    if len(stream.hit_ratios) < 2:
        return cannot_tell("It is not known what a cache would have answered of fewer clients.")
    half, whole = stream.hit_ratios[-2:]
    lost = missing(half, whole, stream.kept_share)
    if lost <= LARGEST:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{stream.kept_share:.1%} of the clients were kept. A cache that forgets nothing would answer {whole.middle:.1%} of their "
        f"queries, and {half.middle:.1%} ({half.lowest:.1%} to {half.highest:.1%}) of those of half of them: with all clients it may be up "
        f"to {lost * 100:.1f} points more.",
        evidence={
            "kept_share_percent": round(100 * stream.kept_share, 2),
            "hit_ratio_percent": round(100 * whole.middle, 2),
            "hit_ratio_of_half_percent": round(100 * half.middle, 2),
            "hit_ratio_of_half_lowest_percent": round(100 * half.lowest, 2),
            "hit_ratio_of_half_highest_percent": round(100 * half.highest, 2),
            "missing_points": round(100 * lost, 2),
        },
        metrics=(trial.record.spec.main_metric,),
        remedy="Keep more clients (`--set stream.keep_share=...`) until the result no longer moves, or say which share was replayed. "
        "Compare servers by the same clients only.",
    )


def _single(trial: Trial, stream: Stream) -> Conclusion:
    return Conclusion(
        "found",
        summary=f"{stream.kept_queries_share:.1%} of each client's queries were kept, and the others left out one by one. So fewer "
        "queries share a name, and the hit ratio is lower than that of all of them.",
        evidence={"kept_queries_percent": round(100 * stream.kept_queries_share, 2)},
        metrics=(trial.record.spec.main_metric,),
        remedy="Leave out whole clients, not queries: `--set stream.keep_share=...` with `stream.keep_queries=1.0`.",
    )


def missing(half: HitRatio, whole: HitRatio, kept_share: float) -> float:
    """How much higher the hit ratio of all clients may be: each doubling adds no more than the last did, and never more
    than there is left."""
    doublings = math.log2(1 / kept_share)
    return min(1 - whole.middle, max(0.0, whole.middle - half.middle) * doublings)
