"""Whether a rate can be held, before it is measured: a short ramp up to it, on a twin of the server under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dnsrig.errors import UsageError
from dnsrig.procedures import _twin
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import validity
from dnsrig.runs.load_result import LoadResult
from dnsrig.text import digits

SHARES = (0.25, 0.5, 1.0)
"""Of the rate asked for: one step each. The first ones fill caches, so the last one does not find them empty."""
OPTIONS: dict[str, int | float | str | bool] = {"ramp_s": 0.0, "ramp_loss_percent": 5.0}


def check(options: Mapping[str, int | float | str | bool]) -> None:
    """Raise UsageError on what is no ramp."""
    if float(options["ramp_s"]) < 0:
        raise UsageError(f"options.ramp_s = {options['ramp_s']} is invalid", hint="seconds a step; 0: no ramp")
    if not 0 <= float(options["ramp_loss_percent"]) <= 100:
        raise UsageError(f"options.ramp_loss_percent = {options['ramp_loss_percent']} is invalid", hint="from 0 to 100")


def expected_s(options: Mapping[str, int | float | str | bool]) -> float:
    return len(SHARES) * float(options["ramp_s"])


def refusal(context: TrialContext, play: Callable[[str, float, float], LoadResult], *, limit_s: float) -> str:
    """Why the rate is refused; empty where it is held, or no ramp is asked for.

    ``play`` puts the load called so on the server, for so many seconds, at this share of the rate. ``limit_s``: until
    the twin is ready.
    """
    if not (step_s := float(context.option("ramp_s"))):
        return ""
    most_percent = float(context.option("ramp_loss_percent"))
    with _twin.running(context, context.spec.subject, "ramp", limit_s=limit_s):
        for number, share in enumerate(SHARES, start=1):
            load = play(f"ramp-{number}", step_s, share)
            if reason := why_not_held(load, most_percent):
                return f"the rate is refused: in a ramp before the trial, at {share:.0%} of it, {reason}"
    return ""


def why_not_held(load: LoadResult, most_percent: float) -> str:
    """What of one step says that the instrument or the server does not follow; empty where both do."""
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
