"""The cache of a resolver was not empty at the start, though nobody warmed it up.

Knot Resolver keeps its cache in a file, which outlives the process; a resolver that was asked before `measure` has
answers as well. The first minute then looks like any other, and whoever reads it as that of an empty cache is told that
a start costs nothing.

An empty cache has to ask for each different question once, and for delegations beside. So a resolver that counts fewer
misses than there are different questions, or sends fewer queries, had answers. Records that expire meanwhile cost more
queries, never fewer: little of what was in the cache may go unseen. One that validates may deny names by what it knows
of others (RFC 8198), so there NXDOMAIN is not counted.
"""

from __future__ import annotations

from dnsrig.analysis import streamed
from dnsrig.analysis.metrics.resolver import growth
from dnsrig.analysis.read import Trial
from dnsrig.analysis.row_files.statistics import STATISTICS
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 40
TITLE = "the cache was not empty at the start"
SOURCE = "Knot Resolver, documentation of `cache.open`: the cache is a file that survives restarts"
WEIGHT = "invalidates"
FEWEST_QUESTIONS = 100
WHOLE_SHARE = 0.95
"""Of the stream, that must have been sent: how many different questions a part has is not known."""
LEAST_SHARE = 0.75
"""Of the different questions: with fewer misses the cache had the others. A name may be known to be missing by another
one (RFC 8020), so some are fewer anyway."""


def after(trial: Trial) -> Conclusion | None:
    spec, stream = trial.record.spec, streamed.of(trial)
    asked = spec.hosts[trial.subject].resolving
    if stream is None or asked is None or spec.options.get("warmup_s") or trial.record.outcome not in JUDGED:
        return None
    counted = {name: found[0] for name in ("cache_misses", "upstream_queries") if (found := growth(trial, name))}
    if len(counted) < 2:
        return cannot_tell("The resolver did not tell its counters.")
    if trial.load.sent < WHOLE_SHARE * stream.queries or not stream.queries:
        return cannot_tell("How many different questions were sent is not known: not all of the stream was.")
    synthesised = trial.load.rcodes.get("NXDOMAIN", 0) if asked.level == "validating" else 0
    questions = int(stream.holds.get("distinct_questions", 0)) - synthesised
    if questions < FEWEST_QUESTIONS:
        return cannot_tell(f"{max(0, questions)} different questions are too few; {FEWEST_QUESTIONS} are needed.")
    if min(counted.values()) >= LEAST_SHARE * questions:
        return CLEAR
    misses, upstream = (int(counted[name]) for name in ("cache_misses", "upstream_queries"))
    return Conclusion(
        "found",
        summary=f"Clients asked {questions:,} different questions or more, and the resolver counted {misses:,} misses and sent {upstream:,} queries: "
        "an empty cache needs one for each.",
        evidence={
            "different_questions": questions,
            "cache_misses": misses,
            "upstream_queries": upstream,
        },
        series=(STATISTICS.name,),
        metrics=(spec.main_metric, "cache_hits_percent", "upstream_a_query"),
        remedy="Let each trial have a resolver whose state is empty, and let nobody ask it before `measure`; or say that it was warm: "
        "`--set options.warmup_s=10`.",
    )
