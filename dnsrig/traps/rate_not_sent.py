"""The requested rate is not the rate that was sent.

A generator that has too little time, no room in its socket or too few connections sends less than requested, and few
generators report it. Its latency then belongs to a lower rate than the one that is shown with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 45
GROUP = "the load generator"
OUTCOMES = JUDGED
TITLE = "the requested rate was not the rate sent"
SOURCE = (
    "G. Tene, How NOT to Measure Latency (2013); dnsperf 2.16 stops at its limit of outstanding queries and restarts its schedule "
    "each second"
)
WEIGHT = "invalidates"
LARGEST_SHARE = 0.01
"""Largest relative difference between the sent and the requested rate."""
POISSON_DEVIATIONS = 4
"""Standard deviations by which a Poisson process may also differ from its mean number of arrivals."""


@dataclass(frozen=True)
class Sent:
    """Requested and sent rates."""

    asked_qps: float
    due_qps: float
    sent_qps: float
    chance: float
    """Largest relative deviation of the number of queries that chance alone may cause."""

    @property
    def miss(self) -> float:
        """Relative difference between the sent rate and the requested or due rate, whichever is larger; negative: too
        few queries."""
        missed_due = self.sent_qps / self.due_qps - 1
        missed_rate = self.sent_qps / self.asked_qps - 1
        beyond_chance = math.copysign(max(0.0, abs(missed_rate) - self.chance), missed_rate)
        return max(missed_due, beyond_chance, key=abs)


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if load.model not in ("rate", "ramp"):
        return None
    sent = at_capacity(load) if load.model == "ramp" else at_rate(load)
    if sent is None:
        return cannot_tell(
            "No query was due, or no rate of the ramp passed, so there is no rate to compare with the requested one."
        )
    if abs(sent.miss) <= LARGEST_SHARE:
        return CLEAR
    ramp = " at the capacity that the ramp found" if load.model == "ramp" else ""
    return Conclusion(
        "found",
        summary=f"Of {sent.asked_qps:,.0f} requested queries a second{ramp}, {sent.due_qps:,.0f} were due and "
        f"{sent.sent_qps:,.0f} were sent: {sent.miss:+.1%}.",
        evidence={
            "asked_qps": round(sent.asked_qps, 1),
            "due_qps": round(sent.due_qps, 1),
            "sent_qps": round(sent.sent_qps, 1),
            "missed_percent": round(100 * sent.miss, 2),
            "unsent": load.unsent,
        },
        metrics=(trial.record.spec.main_metric, "asked_qps", "answered_qps"),
        remedy="Attribute the latency to the sent rate, or help the instrument to keep up: lower the rate "
        "(`--set options.rate_qps=...`), or give the instrument more CPUs "
        f"(`--set 'hosts.{trial.record.spec.generators[0]}.cpus=[...]'`); over TCP and DoT also use more clients (`--set options.clients=...`).",
    )


def at_rate(load: LoadResult) -> Sent | None:
    """The rates of a load with a fixed rate; None if no query was due."""
    if not load.due or not load.asked_qps or load.span_s <= 0:
        return None
    expected = load.asked_qps * load.span_s
    # The first query may be due at the very start and the last at the very end: one more than the rate implies.
    chance = POISSON_DEVIATIONS / math.sqrt(expected) if load.poisson else 1 / expected
    # Queries that were sent late were sent at a lower rate, although all of them may have been sent in the end.
    sending_s = max(load.span_s, load.sending_ns / 1e9)
    return Sent(load.asked_qps, load.due / load.span_s, load.sent / sending_s, chance)


def at_capacity(load: LoadResult) -> Sent | None:
    """The rates of the ramp's step that became its result: the repeat with the largest deviation."""
    held = [step for step in load.steps if step.holds]
    capacity_qps = load.capacity_qps
    if not held or not capacity_qps:
        return None
    nearest = min(held, key=lambda step: abs(step.rate_qps - capacity_qps)).rate_qps
    steps = [Sent(nearest, nearest, step.sent_qps, 0.0) for step in held if step.rate_qps == nearest]
    return max(steps, key=lambda sent: abs(sent.miss))
