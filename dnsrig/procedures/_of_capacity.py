"""A share of the capacity as the rate of a replay: the capacity is searched first, by the stream itself, on twins of
the server under test, each of which begins with nothing, as the server does that is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.procedures import _ramp, _twin
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import load_arguments, validity
from dnsrig.runs.load_result import LoadResult

OPTIONS: dict[str, int | float | str | bool] = {"of_capacity": 0.0}
FIRST, LEAST = 1 / 16, 1 / 256
"""Shares of the stream's rate: that with which the search begins, and the lowest."""
PRECISION = 1.1
"""The lowest rate that did not hold, by the highest that did, at the end."""
ALIKE = 1.5
"""The highest of the losses of all rates, by the lowest, up to which they count as one loss."""
STEPS_USUAL = 8
AROUND_S = 4.0
"""What a step takes beside asking: a twin starts and ends, and queries time out."""
NAME = "ramp"
"""Of the summary: what is told of a ramp before a trial is told of this search."""


@dataclass
class Found:
    """Of a search over shares of a rate."""

    holds: float = 0.0
    """The highest that did; 0: none."""
    fails: float | None = None
    """The lowest that did not; None: even the whole rate held."""
    reason: str = ""
    """Why the search ended early: the instrument did not keep up."""


@dataclass
class Step:
    share: float
    load: LoadResult
    reason: str = ""
    """Why it did not hold."""
    instrument_failed: bool = False


def check(options: Mapping[str, int | float | str | bool]) -> None:
    """Raise UsageError on what is no share, or no search."""
    share = float(options["of_capacity"])
    if not 0 <= share <= 1:
        raise UsageError(
            f"options.of_capacity = {share:g} is invalid", hint="a share, such as 0.5; 0: the stream's own rate"
        )
    if share and not float(options["ramp_s"]):
        raise UsageError(
            "options.of_capacity needs steps of a search", hint="seconds a step, such as options.ramp_s = 2"
        )


def expected_s(options: Mapping[str, Any]) -> float:
    return STEPS_USUAL * (float(options["ramp_s"]) + AROUND_S)


def share(context: TrialContext) -> float:
    """Of the stream's rate, at which it is replayed."""
    return float(context.summaries.get(NAME, {}).get("share", 1.0))


def search(step: Callable[[float], Step]) -> Found:
    """Double the share until one does not hold, or halve it until one does; then narrow the gap."""
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


def refusal(context: TrialContext, play: Callable[[str, float, float], LoadResult], *, limit_s: float) -> str:
    """Search, and note what was found; why there is nothing to measure, if so.

    ``play`` puts the load called so on the server, for so many seconds, at this share of the rate. ``limit_s``: until a
    twin is ready.
    """
    step_s, most_percent = float(context.option("ramp_s")), float(context.option("ramp_loss_percent"))
    tried: list[Step] = []

    def step(share: float) -> Step:
        name = f"search-{len(tried) + 1}"
        with _twin.running(context, context.spec.subject, name, limit_s=limit_s):
            load = play(name, step_s, share)
        late = validity.why_not(load)
        tried.append(Step(share, load, _ramp.why_not_held(load, most_percent), instrument_failed=bool(late)))
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
        "steps": [_told(one, rate_qps) for one in tried],
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
    """What there is to add where no rate held: the loss is no greater at the highest rate than at the lowest."""
    shares = [1 - load.answered / load.sent for load in loads if load.sent and load.answered]
    if len(shares) < 2 or len(shares) < len(loads) or max(shares) > ALIKE * min(shares):
        return ""
    return (
        f". Between {min(shares):.2%} and {max(shares):.2%} of the queries had no answer at each rate, so the loss does not"
        " depend on the rate: raise options.ramp_loss_percent above it, or find what loses them"
    )


def rate_of(context: TrialContext) -> float:
    """Queries a second of the stream at the speed that is asked for."""
    stream = context.spec.stream
    assert stream is not None
    return stream.queries / stream.span_s * float(context.option("speed"))


def _told(one: Step, rate_qps: float) -> dict[str, Any]:
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
