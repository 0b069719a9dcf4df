"""The server gave no answer for most of the time, so the result is its start-up time.

Some servers bind their socket but leave every query waiting until all zones are loaded, or tried once. The transfers
may have finished long before: Knot DNS checks only from time to time whether it may begin to answer, so a cold start of
100 zones takes 30 ms or 210 ms, depending on the moment of that check.
"""

from __future__ import annotations

from dnsrig.metrics.transfer import floor_ns
from dnsrig.rundir import ServerRecord
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell

GROUP = "limits of servers and hosts"
TITLE = "no answer before all zones were loaded: the start-up decides the time"
SOURCE = "Knot DNS, src/utils/knotd/main.c, check_loaded(); measured with Knot DNS 3.5.8"
LARGEST_SHARE = 0.8
"""Share of the whole time before the first answer above which the start decides the result."""
SHORTEST_S = 0.1
"""A start as fast as this is not remarkable."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    server = trial.server
    if record.outcome != "done" or server is None or not trial.is_cold_start or floor_ns(trial) is not None:
        return None  # for a primary the start is the question, and the instrument gives no answers
    whole_s, first_s = trial.time_s, trial.value("first_answer_s")
    if not whole_s or first_s is None:
        return cannot_tell("The time of the first answer is missing.")
    share = first_s / whole_s
    if share < LARGEST_SHARE or first_s < SHORTEST_S:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"{server.server.label} gave its first answer after {first_s:.3f} s of {whole_s:.3f} s ({share:.0%}){_cause(server)}.",
        evidence={
            "first_answer_s": round(first_s, 4),
            record.spec.main_metric: round(whole_s, 4),
            "share_percent": round(100 * share, 1),
        },
        metrics=(record.spec.main_metric, "first_answer_s", "time_per_zone_ms"),
        remedy=_remedy(server),
    )


def _cause(server: ServerRecord) -> str:
    settings = [f"{limit.setting} = {limit.value}" for limit in server.limits if limit.effect == "silent-start"]
    return f": its setting {settings[0]} makes it wait with answers until all zones are there" if settings else ""


def _remedy(server: ServerRecord) -> str:
    known = [f"{limit.setting}: {limit.remedy}" for limit in server.limits if limit.effect == "silent-start"]
    return (
        known[0]
        if known
        else "Compare sizes at which the start is a small part of the time, or measure the start separately."
    )
