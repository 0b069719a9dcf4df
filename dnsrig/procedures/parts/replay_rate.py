"""The rate of a replay: whether it can be held, or which share of the capacity it is. Both are found out before the
trial measures, on twins of the server under test, by the stream itself.

- A ramp (``ramp_s``) asks one twin at a quarter, half and all of the rate.
- A search (``of_capacity``) looks for the highest rate that holds. Each step has a twin of its own, so that caches are
  empty at the beginning of a step, as they are when the trial measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dnsrig.analysis.load_result import LoadResult
from dnsrig.errors import UsageError
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import load_arguments, validity
from dnsrig.rundir import Scalar
from dnsrig.text import digits

OPTIONS: dict[str, Scalar] = {"ramp_s": 0.0, "ramp_loss_percent": 5.0, "of_capacity": 0.0}
RAMP_SHARES = (0.25, 0.5, 1.0)
"""Shares of the rate, one for each step of a ramp. The first steps fill caches, so the last one does not find them
empty."""
FIRST, LEAST = 1 / 16, 1 / 256
"""Shares of the stream's rate: the first one that a search tries, and the lowest."""
PRECISION = 1.1
"""Where a search ends: the lowest rate that failed, divided by the highest rate that held."""
ALIKE = 1.5
"""The highest of the losses of all rates, divided by the lowest, up to which they count as one loss."""
STEPS_USUAL = 8
AROUND_S = 4.0
"""Time that a step takes beside the queries: a twin starts and ends, and queries time out."""
NAME = "ramp"
"""Name of the summary of a search: the same as the summary of a ramp of `load`, so that reports show it alike."""

Play = Callable[[str, float, float], LoadResult]
"""Replays the stream, under a name, for a number of seconds, at a share of its rate."""


@dataclass
class Found:
    """Result of a search over shares of a rate."""

    holds: float = 0.0
    """The highest share that held; 0: none did."""
    fails: float | None = None
    """The lowest share that failed; None: even the whole rate held."""
    reason: str = ""
    """Why the search ended early: the instrument did not keep up."""


@dataclass
class Step:
    """One step of a search."""

    share: float
    load: LoadResult
    reason: str = ""
    """Why the rate did not hold."""
    instrument_failed: bool = False


def check(options: Mapping[str, Scalar]) -> None:
    """Raise UsageError if the options describe a search without steps."""
    if options["of_capacity"] and not options["ramp_s"]:
        raise UsageError(
            "options.of_capacity needs steps of a search", hint="seconds a step, such as options.ramp_s = 2"
        )


def expected_s(options: Mapping[str, Any]) -> float:
    """Duration of the ramp or of the search, approximately."""
    step_s = float(options["ramp_s"])
    return STEPS_USUAL * (step_s + AROUND_S) if options["of_capacity"] else len(RAMP_SHARES) * step_s


def share(context: TrialContext) -> float:
    """The share of the stream's rate at which the trial replays it."""
    return float(context.summaries.get(NAME, {}).get("share", 1.0))


def refusal(context: TrialContext, play: Play, *, limit_s: float) -> str:
    """Execute the search or the ramp that the options ask for. Return why the trial is refused; empty if it is not.

    ``limit_s``: seconds until a twin must be ready.
    """
    if context.option("of_capacity"):
        return _search_refusal(context, play, limit_s=limit_s)
    return _ramp_refusal(context, play, limit_s=limit_s) if context.option("ramp_s") else ""


def _ramp_refusal(context: TrialContext, play: Play, *, limit_s: float) -> str:
    step_s, most_percent = float(context.option("ramp_s")), float(context.option("ramp_loss_percent"))
    with context.twin(context.spec.subject, "ramp", limit_s=limit_s):
        for number, share in enumerate(RAMP_SHARES, start=1):
            load = play(f"ramp-{number}", step_s, share)
            if reason := why_not_held(load, most_percent):
                return f"the rate is refused: in a ramp before the trial, at {share:.0%} of it, {reason}"
    return ""


def why_not_held(load: LoadResult, most_percent: float) -> str:
    """Why a rate did not hold: the instrument did not keep up, or too few queries were answered. Empty if it held."""
    if reason := validity.why_not(load):
        return reason
    unanswered = load.sent - load.answered
    if unanswered > most_percent / 100 * load.sent:
        share = 100 * unanswered / load.sent
        return (
            f"{digits(share)} % of {load.sent:,} queries had no answer within"
            f" {(load.timeout_ns or 0) / 1e9:g} s, where {most_percent:g} % are allowed"
        )
    return ""


def search(step: Callable[[float], Step]) -> Found:
    """Double the share until one fails, or halve it until one holds; then narrow the gap."""
    found = Found()
    while not _is_over(found):
        tried = _next(found)
        one = step(tried)
        if one.instrument_failed:
            found.reason = one.reason
            break
        if one.reason:
            found.fails = tried
        else:
            found.holds = tried
    return found


def _is_over(found: Found) -> bool:
    if found.fails is None:
        return found.holds >= 1
    if not found.holds:
        return found.fails / 2 < LEAST
    return found.fails <= PRECISION * found.holds


def _next(found: Found) -> float:
    if found.fails is None:
        return min(1.0, max(FIRST, 2 * found.holds))
    return math.sqrt(found.holds * found.fails) if found.holds else found.fails / 2


def _search_refusal(context: TrialContext, play: Play, *, limit_s: float) -> str:
    """Search the capacity and keep the steps as a summary. Return why there is nothing to measure, if so."""
    step_s, most_percent = float(context.option("ramp_s")), float(context.option("ramp_loss_percent"))
    tried: list[Step] = []

    def step(share: float) -> Step:
        name = f"search-{len(tried) + 1}"
        with context.twin(context.spec.subject, name, limit_s=limit_s):
            load = play(name, step_s, share)
        late = validity.why_not(load)
        tried.append(Step(share, load, why_not_held(load, most_percent), instrument_failed=bool(late)))
        return tried[-1]

    found = search(step)
    rate_qps = rate_of(context)
    wanted_qps = load_arguments.rounded_down(found.holds * rate_qps * float(context.option("of_capacity")))
    context.summaries[NAME] = {
        "model": "ramp",
        "share": wanted_qps / rate_qps,
        "capacity_qps": found.holds * rate_qps or None,
        "capacity_is_lower_bound": found.fails is None,
        "timeout_ns": round(float(context.option("timeout_s")) * 1e9),
        "steps": [_summary(one, rate_qps) for one in tried],
    }
    if found.reason:
        return f"the capacity is not known: {found.reason}"
    if found.fails is None:
        return f"the capacity is not known: even {rate_qps:,.0f} queries a second held, which is all of the stream"
    if not found.holds:
        least = f"the capacity is not known: not even {found.fails * rate_qps:,.0f} queries a second held"
        return f"{least}{loss_at_every_rate([one.load for one in tried])}"
    return ""


def loss_at_every_rate(loads: Sequence[LoadResult]) -> str:
    """A sentence for the case that no rate held and the loss is no greater at the highest rate than at the lowest."""
    shares = [1 - load.answered / load.sent for load in loads if load.sent and load.answered]
    if len(shares) < 2 or len(shares) < len(loads) or max(shares) > ALIKE * min(shares):
        return ""
    return (
        f". Between {min(shares):.2%} and {max(shares):.2%} of the queries had no answer at each rate, so the loss does not"
        " depend on the rate: raise options.ramp_loss_percent above it, or find what loses them"
    )


def rate_of(context: TrialContext) -> float:
    """Queries a second of the stream at the speed that the options set."""
    stream = context.spec.stream
    assert stream is not None
    return stream.queries / stream.span_s * float(context.option("speed"))


def _summary(one: Step, rate_qps: float) -> dict[str, Any]:
    load = one.load
    return {
        "rate_qps": one.share * rate_qps,
        "sent_qps": load.sent / load.span_s if load.span_s > 0 else 0.0,
        "holds": not one.reason,
        "why": one.reason,
        "instrument_failed": one.instrument_failed,
        "p50_ns": load.latency_ns.get("p50"),
        "p99_ns": load.latency_ns.get("p99"),
        "lag_p99_ns": load.lag_ns.get("p99"),
        "busy_share": load.busy_share,
        "start_ns": load.start_ns,
        "end_ns": load.end_ns,
    }
