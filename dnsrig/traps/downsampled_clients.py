"""A part of the clients shares fewer names, so a resolver's cache answers a smaller share of their queries.

A replay that keeps a tenth of the clients keeps a tenth of the queries, but more than a tenth of the names. The hit
ratio falls, and everything that depends on it changes: for each query, the resolver does more work than with all
clients.

The kept clients show the size of the effect: half of them have some hit ratio, all of them a higher one, and doubling
their number again would add no more than that. `replay describe` divides the clients into sixteen groups. It counts how
many queries an unlimited cache that never forgets would have answered for one, two, four, eight and all groups.
Combining the groups in several ways gives the spread.

If single queries were left out, the size of the effect cannot be estimated: a client's repeated queries are missing too
(docs/results/resolvers.md shows measured examples).
"""

from __future__ import annotations

import math

from dnsrig.runs import streamed
from dnsrig.runs.streamed import HitRatio, Stream
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 60
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "fewer clients, and a lower hit ratio"
SOURCE = "J. Jung et al., DNS Performance and the Effectiveness of Caching (2002): hit ratio by the number of clients that share a cache"
LARGEST = 0.01
"""Largest change of the hit ratio: at 90 %, it means a tenth more queries to resolve."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := streamed.of(trial)) is None:
        return None
    if stream.kept_queries_share < 1:
        return _single(trial, stream)
    if stream.kept_share >= 1:
        return CLEAR
    if len(stream.hit_ratios) < 2:
        return cannot_tell("It is not known how many queries of fewer clients a cache would have answered.")
    half, whole = stream.hit_ratios[-2:]
    lost = missing(half, whole, stream.kept_share)
    if lost <= LARGEST:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{stream.kept_share:.1%} of the clients were kept. A cache that never forgets would answer {whole.middle:.1%} of their "
        f"queries, and {half.middle:.1%} ({half.lowest:.1%} to {half.highest:.1%}) of the queries of half of them. With all clients the hit "
        f"ratio may be up to {lost * 100:.1f} points higher.",
        evidence={
            "kept_share_percent": round(100 * stream.kept_share, 2),
            "hit_ratio_percent": round(100 * whole.middle, 2),
            "hit_ratio_of_half_percent": round(100 * half.middle, 2),
            "hit_ratio_of_half_lowest_percent": round(100 * half.lowest, 2),
            "hit_ratio_of_half_highest_percent": round(100 * half.highest, 2),
            "missing_points": round(100 * lost, 2),
        },
        metrics=(trial.record.spec.main_metric,),
        remedy="Keep more clients (`--set stream.keep_share=...`) until the result no longer changes, or state the share that was replayed. "
        "Compare servers only with the same clients.",
    )


def _single(trial: Trial, stream: Stream) -> Conclusion:
    return Conclusion(
        "found",
        summary=f"{stream.kept_queries_share:.1%} of each client's queries were kept, and the others were left out one by one. So fewer "
        "queries share a name, and the hit ratio is lower than with all queries.",
        evidence={"kept_queries_percent": round(100 * stream.kept_queries_share, 2)},
        metrics=(trial.record.spec.main_metric,),
        remedy="Leave out whole clients, not queries: `--set stream.keep_share=...` with `stream.keep_queries=1.0`.",
    )


def missing(half: HitRatio, whole: HitRatio, kept_share: float) -> float:
    """By how much the hit ratio of all clients may be higher. Each doubling adds no more than the last one, and the
    ratio never exceeds 1."""
    doublings = math.log2(1 / kept_share)
    return min(1 - whole.middle, max(0.0, whole.middle - half.middle) * doublings)
