"""A resolver's cache was not empty at the start, although the experiment did not warm it up.

Knot Resolver keeps its cache in a file that outlives the process. A resolver that was queried before `measure` has
answers in its cache, too. The first minute then looks like any other, and a reader who takes it for the first minute of
an empty cache concludes that a start costs nothing.

With an empty cache, a resolver must ask upstream once for each different question, and also for delegations. So a
resolver had answers in its cache if it counts fewer misses, or sends fewer queries, than there are different questions.
Records that expire meanwhile cause more queries, never fewer, so only a small cache content may go unnoticed. A
validating resolver may deny names from what it knows of others (RFC 8198), so there NXDOMAIN answers are not counted.
"""

from __future__ import annotations

from dnsrig.metrics.resolver import growth
from dnsrig.runs import streamed
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 40
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "the cache was not empty at the start"
SOURCE = "Knot Resolver, documentation of `cache.open`: the cache is a file that survives restarts"
WEIGHT = "invalidates"
FEWEST_QUESTIONS = 100
WHOLE_SHARE = 0.95
"""Least share of the stream that must have been sent: the number of different questions in a part is not known."""
LEAST_SHARE = 0.75
"""Least ratio of misses to different questions: with fewer misses, the others were in the cache. Some are always fewer,
because a name may be known to be missing from another one (RFC 8020)."""


def after(trial: Trial) -> Conclusion | None:
    spec, stream = trial.record.spec, streamed.of(trial)
    asked = spec.hosts[trial.subject].resolving
    if stream is None or asked is None or spec.options.get("warmup_s"):
        return None
    counted = {name: found[0] for name in ("cache_misses", "upstream_queries") if (found := growth(trial, name))}
    if len(counted) < 2:
        return cannot_tell("The resolver did not report its counters.")
    if trial.load.sent < WHOLE_SHARE * stream.queries or not stream.queries:
        return cannot_tell("The number of different questions is not known: not all of the stream was sent.")
    synthesised = trial.load.rcodes.get("NXDOMAIN", 0) if asked.level == "validating" else 0
    questions = int(stream.holds.get("distinct_questions", 0)) - synthesised
    if questions < FEWEST_QUESTIONS:
        return cannot_tell(f"{max(0, questions)} different questions are too few; {FEWEST_QUESTIONS} are needed.")
    if min(counted.values()) >= LEAST_SHARE * questions:
        return CLEAR
    if trial.load.answered < WHOLE_SHARE * stream.queries:
        return cannot_tell("Many queries had no answer, and perhaps never reached the resolver's cache.")
    misses, upstream = (int(counted[name]) for name in ("cache_misses", "upstream_queries"))
    return Conclusion(
        "found",
        summary=f"Clients asked at least {questions:,} different questions, but the resolver counted only {misses:,} misses and sent {upstream:,} "
        "queries. With an empty cache it needs at least one for each.",
        evidence={
            "different_questions": questions,
            "cache_misses": misses,
            "upstream_queries": upstream,
        },
        series=(STATISTICS.name,),
        metrics=(spec.main_metric, "cache_hits_percent", "upstream_a_query"),
        remedy="Start each trial with an empty cache, and send the resolver no queries before `measure`. Or declare a warm cache: "
        "`--set options.warmup_s=10`.",
    )
