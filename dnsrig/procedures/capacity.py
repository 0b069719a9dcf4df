"""Capacity: the highest rate of queries that a server holds, by search.

A rate holds if at most ``ramp_loss_percent`` of the queries have no answer within ``timeout_s`` and the percentile
``ramp_percentile`` of the latency, counted from the moment at which each query was due, is at most ``ramp_latency_ms``.
The search begins at ``ramp_start_qps`` (up to ``ramp_most_qps``), doubles until a rate does not hold, and narrows the
gap to ``ramp_precision_percent``; each rate lasts ``ramp_step_s`` and is tried up to ``ramp_repeats`` times, by
majority. The procedure also has the options of `latency`; the load before it, ``warmup_s``, has the first rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.procedures import Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.instrument import Overdue
from dnsrig.procedures.parts import load_arguments, resolver_statistics, serving, validity
from dnsrig.rundir import Scalar

DESCRIPTION = "the highest rate of queries at which losses and a percentile of the latency stay within limits"
MAIN_METRIC = "capacity_qps"
OF_RUNNING_SERVER = True
OWN_QUERIES = True
OPTIONS: dict[str, Scalar] = {
    **serving.OPTIONS,
    "warmup_s": 1.0,
    "ramp_repeats": 3,
    "ramp_precision_percent": 3.0,
}
RANGES, CHOICES = load_arguments.RANGES, serving.CHOICES
GRACE_S = 30.0
hosts, links, far = serving.hosts, serving.links, serving.far
validate, checks = serving.validate, serving.checks


def expected_s(options: Mapping[str, Any]) -> float:
    return float(options["warmup_s"]) + load_arguments.ramp_expected_s(options)


def measure(context: TrialContext) -> Result:
    limit_s = context.spec.limit_s
    serving.bring_up(context)
    with context.phase("warmup"):
        serving.settle(context)
        if warmup_s := float(context.option("warmup_s")):
            start_qps = float(context.option("ramp_start_qps"))
            serving.ask(context, "warmup", start_qps, warmup_s, limit_s=warmup_s + GRACE_S)
    try:
        during_s = limit_s + GRACE_S
        with (
            serving.changing(
                context, duration_s=during_s, expected_s=load_arguments.ramp_expected_s(context.spec.options)
            ),
            context.profiled(),
            resolver_statistics.sampled(context),
            context.phase("measure"),
        ):
            with serving.transferring(context, duration_s=during_s):
                load = serving.search(context, "load", limit_s=limit_s)
            context.servers.count_threads()
    except Overdue:
        return Result("timeout", f"the search was not over after {limit_s:g} s")
    serving.drain(context)
    if reason := serving.why_no_transfers(context):
        return Result("server-failed", reason)
    if load.capacity_qps is None:
        return serving.held_nothing(context, load)
    if reason := validity.why_not(load):
        return Result("invalid", reason)
    most_qps = float(context.option("ramp_most_qps"))
    reached = f"even the highest rate of the search held: options.ramp_most_qps = {most_qps:.10g}"
    return Result("done", reached if load.held_all_rates else "")
