"""A transfer takes longer than the zone's generation cycle.

A registry generates its zone periodically. A site whose transfers take longer than one period never catches up: the
next version exists before this one has arrived. Then the IXFR is broken off, or its base no longer exists, and an AXFR
starts, which takes even longer. The transfer time alone looks harmless; only the comparison with the cycle
(``options.cycle_s``) shows that the site falls behind.
"""

from __future__ import annotations

from dnsrig.runs import replication
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, COMPARED, Conclusion, cannot_tell, watched_s

GROUP = "zone transfers"
OUTCOMES = COMPARED
TITLE = "a transfer takes longer than the zone's generation cycle"
SOURCE = "S4: M. Prause, transfers to far sites no longer fitted the cycle, IXFR was cancelled and AXFR begun (2015)"
WEIGHT = "explains"
OPTION = "cycle_s"


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    cycle_s = record.spec.options.get(OPTION)
    if not isinstance(cycle_s, int | float) or isinstance(cycle_s, bool) or cycle_s <= 0:
        return None  # the length of the cycle is not known
    took_s, over = _took_s(trial)
    if took_s is None:
        return cannot_tell(
            f"The time of a transfer is not known, so it cannot be compared with the cycle of {cycle_s:g} s."
        )
    if took_s <= cycle_s:
        if not over:
            return cannot_tell(
                f"The trial ended after {digits(took_s)} s, before the transfer and before the cycle of {cycle_s:g} s."
            )
        return CLEAR
    return _found(trial, took_s, float(cycle_s), over)


def _took_s(trial: Trial) -> tuple[float | None, bool]:
    """The time of the transfer, and whether it was finished: a trial at its limit took at least as long as it was
    watched.

    With several generations, the time of the slowest one.
    """
    if replication.of(trial):
        return replication.slowest_s(trial)
    if trial.record.outcome == "timeout":
        return watched_s(trial), False
    if trial.time_s is not None:
        return trial.time_s, True
    summary = trial.record.instruments.get("ixfr", {})
    each_ns = (summary.get("transfer_ns") or {}).get("p50") if summary.get("done") else None
    return (float(each_ns) / 1e9 if each_ns is not None else None), True


def _found(trial: Trial, took_s: float, cycle_s: float, over: bool) -> Conclusion:
    at_least = "" if over else "at least "
    return Conclusion(
        "found",
        summary=f"A transfer takes {at_least}{digits(took_s, 4)} s, and a new zone is generated every {cycle_s:g} s: {digits(took_s / cycle_s)} cycles. The site falls "
        "behind. An IXFR whose base no longer exists becomes an AXFR.",
        evidence={
            "transfer_s": round(took_s, 3),
            "cycle_s": cycle_s,
            "cycles": round(took_s / cycle_s, 3),
            "at_limit": not over,
        },
        metrics=(trial.record.spec.main_metric,),
        remedy="Let the transfer fill the path (congestion control of the primary, see `dnsrig plan`), send less (IXFR, fewer changes in a "
        "cycle), keep more versions on the primary, or lengthen the cycle.",
    )
