"""The load generator, not the server, decided the result.

A generator without time to spare sends later than it should, and reads answers later than they came: it then measures
itself. The signs: its busiest thread always had work, queries were sent late or not at all, or its CPU was not its own.
Of several generators one is enough, and is named: its share of the queries tells of it.
And where the same run has an echo server: a server cannot be told to be faster than what only reflects queries, so one
that comes near it has met the generator, or the kernel's network between.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dnsrig.analysis import lag
from dnsrig.analysis.cpu_shares import shares_of, steal_series
from dnsrig.analysis.load_result import LoadResult, Try
from dnsrig.analysis.read import Run, Trial
from dnsrig.rundir import OBSERVER, Scalar, TrialSpec
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell
from dnsrig.traps.cpu_contention import FOREIGN_SHARE, SHORTEST_S, STEAL_SHARE

ORDER = 40
TITLE = "the load generator was the bottleneck"
SOURCE = "S2: P. Spacek, in search of latency, test 1: the instrument against an echo server (2023)"
WEIGHT = "invalidates"
BUSY_SHARE = 0.95
"""Of the time with work for the busiest thread, from which a generator that asks for all it can get has none to
spare."""
SENT_SHARE = 0.99
"""Of the rate of a ramp's step: with less sent, the step tells of the generator."""
NEAR_ECHO = 0.95
"""Of what the echo server answered, from which a server is no longer told apart from it."""
FAULTS = ("delay", "jitter", "loss", "stall")
"""Settings of the echo server with which it is no measure of the instrument."""
MOST_NAMED = 3
"""Generators of which it is told what was wrong; of the others how many."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if not load.ran or trial.record.outcome not in JUDGED:
        return None
    told, evidence = _of_ramp(load) if load.model == "ramp" else _of_load(load)
    slow = _of_each(trial)
    cpu, cpu_evidence = _of_cpus(trial)
    if slow or cpu:
        evidence["generators"] = ", ".join(dict.fromkeys([*slow, *cpu]))
    told = [*(_together(slow) or told), *_together(cpu)]
    evidence |= cpu_evidence
    if told:
        blamed = list(dict.fromkeys([*slow, *cpu])) or trial.record.spec.generators
        return Conclusion(
            "found",
            summary=f"The load generator was the bottleneck: {'; '.join(told)}.",
            evidence=evidence,
            series=tuple(series for host in blamed[:MOST_NAMED] for series in steal_series(trial, host)),
            metrics=(trial.record.spec.main_metric, "answered_qps", "send_lag_p99_us"),
            remedy=remedy(blamed[0]),
        )
    if not cpu_evidence and load.model in ("rate", "stream") and not load.lag_ns:
        return cannot_tell("The summary of the load says nothing of its send lag.")
    return CLEAR


def remedy(host: str) -> str:
    """``host``: the one that asks."""
    return (
        f"Give the instrument more CPUs (`--set 'hosts.{host}.cpus=[...]'`), let more hosts ask "
        "(`--set options.generators=...`), or ask for less (`--set options.rate_qps=...`); `dnsrig run echo-baseline` "
        "shows what it can do on this machine."
    )


def _together(by_host: dict[str, list[str]]) -> list[str]:
    """Clauses of a sentence, of the first hosts."""
    told = [clause for host in [*by_host][:MOST_NAMED] for clause in by_host[host]]
    return told + ([f"so it is with {more} others"] if (more := len(by_host) - MOST_NAMED) > 0 else [])


def _of_each(trial: Trial) -> dict[str, list[str]]:
    """What is wrong with single ones of several generators. Steps of a ramp are known of all of them together only."""
    if len(trial.loads) < 2 or trial.load.model == "ramp":
        return {}
    found = {host: _of_load(load)[0] for host, load in trial.loads.items() if load.ran}
    return {host: [f"of {host}, {clause}" for clause in told] for host, told in found.items() if told}


def _of_load(load: LoadResult) -> tuple[list[str], dict[str, Scalar | None]]:
    """What is wrong with a closed loop or a fixed rate, as clauses of a sentence, and the numbers."""
    lag_ns, sent_ns = (figures.get("p99") or 0 for figures in (load.lag_ns, load.sent_latency_ns))
    told, closed = [], load.model == "closed"
    if closed and load.busy_share >= BUSY_SHARE:
        told.append(f"its busiest thread had work for {load.busy_share:.0%} of the time")
    if not closed and (late := lag.why_not(load)):  # there a query is due when an answer makes room for it
        told.append(late)
    if load.unsent:
        told.append(f"{load.unsent:,} of {load.due:,} queries were never sent")
    return told, {
        "busy_percent": round(100 * load.busy_share, 1),
        "send_lag_p99_us": round(lag_ns / 1e3, 1),
        "sent_p99_ms": round(sent_ns / 1e6, 4),
        "unsent": load.unsent,
        "threads": load.threads,
    }


def _of_ramp(load: LoadResult) -> tuple[list[str], dict[str, Scalar | None]]:
    """The same of a ramp: what counts is why the search could not go higher."""
    deciding = steps_that_decided(load.steps, load.capacity_qps)
    own = [step for step in deciding if _step_is_own_fault(step)]
    evidence: dict[str, Scalar | None] = {"capacity_qps": load.capacity_qps, "threads": load.threads}
    # One step at which it could not send ends the engine's search; of the others the majority counts, as it does there.
    if not any(step.instrument_failed for step in own) and 2 * len(own) <= len(deciding):
        return [], evidence
    worst = max(own, key=lambda step: (bool(step.instrument_failed), step.busy_share))
    evidence |= {
        "rate_qps": round(worst.rate_qps, 1),
        "sent_qps": round(worst.sent_qps, 1),
        "busy_percent": round(100 * worst.busy_share, 1),
        "send_lag_p99_us": round((worst.lag_p99_ns or 0) / 1e3, 1),
    }
    return [
        f"where the ramp could go no higher, at {worst.rate_qps:,.0f} queries a second, it sent {worst.sent_qps:,.0f}, its "
        f"busiest thread had work for {worst.busy_share:.0%} of the time and p99 of its send lag was "
        f"{(worst.lag_p99_ns or 0) / 1e3:,.0f} µs"
    ], evidence


def steps_that_decided(steps: Sequence[Try], capacity_qps: float | None) -> list[Try]:
    """The tries that failed at the lowest rate above the capacity: why they did is what decided it."""
    failed = [step for step in steps if not step.holds and step.rate_qps > (capacity_qps or 0.0)]
    lowest_qps = min((step.rate_qps for step in failed), default=0.0)
    return [step for step in failed if step.rate_qps == lowest_qps]


def _step_is_own_fault(step: Try) -> bool:
    """A lag counts by its share only: beyond its capacity a server may make a generator late over TCP."""
    return bool(
        step.instrument_failed
        or step.busy_share >= BUSY_SHARE
        or (step.sent_qps < SENT_SHARE * step.rate_qps and step.instrument_failed is None)
        or (step.lag_p99_ns or 0) > max(lag.NEVER_NS, lag.SHARE * (step.p99_ns or 0))
    )


def _of_cpus(trial: Trial) -> tuple[dict[str, list[str]], dict[str, Scalar | None]]:
    """What others took of the CPUs of which generators, and the most that they took of any; no numbers without
    samples, or where `measure` was too short for ticks."""
    known, told = [], {}
    for host in trial.record.spec.generators:
        shares = shares_of(trial, host) if host in trial.record.spec.hosts else None
        if shares is None or shares[0] < SHORTEST_S:
            continue
        _, steal, foreign = shares
        known.append((steal, foreign))
        if clauses := _of_cpu(trial, host, steal, foreign):
            told[host] = clauses
    if not known:
        return told, {}
    steal, foreign = (max(shares) for shares in zip(*known))
    return told, {"steal_percent": round(100 * steal, 2), "foreign_percent": round(100 * foreign, 2)}


def _of_cpu(trial: Trial, host: str, steal: float, foreign: float) -> list[str]:
    loads, machine = trial.loads, trial.record.spec.hosts[host].machine
    whose = f"the CPUs of {host}{f' on {machine}' if machine else ''}" if len(loads) > 1 or machine else "its CPUs"
    told = []
    if steal > STEAL_SHARE:
        told.append(f"the hypervisor took {steal:.1%} of the time of {whose}")
    # A generator with real-time priority does not wait for other programs.
    if foreign > FOREIGN_SHARE and not loads[host].real_time:
        told.append(f"other programs took {foreign:.1%} of the time of {whose}")
    return told


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """Each server beside the echo server that differs from it in nothing else, where a trial looked for the highest
    rate."""
    answered = {variant.id: _highest_qps(run, variant.id) for variant in run.manifest.variants}
    specs = run.manifest.specs
    echoes = {_rest(specs[name]): name for name, qps in answered.items() if qps and _is_echo(specs[name])}
    for name, qps in answered.items():
        echo = echoes.get(_rest(specs[name]))
        floor_qps = answered.get(echo) if echo else None
        if qps and floor_qps and _kind(specs[name]) != "echo":
            yield name, beside_echo(qps, floor_qps, specs[name].main_metric, specs[name].generators[0])


def beside_echo(qps: float, echo_qps: float, metric: str, host: str = OBSERVER) -> Conclusion:
    """``qps``: what the server answered; ``echo_qps``: what the echo server did, by the same instrument on ``host``."""
    if qps < NEAR_ECHO * echo_qps:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"It answered {qps:,.0f} queries a second, {qps / echo_qps:.0%} of the {echo_qps:,.0f} of the echo server: the "
        "generator, or the kernel's network between, decided, and not the server.",
        evidence={
            "answered_qps": round(qps, 1),
            "echo_answered_qps": round(echo_qps, 1),
            "of_echo_percent": round(100 * qps / echo_qps, 1),
        },
        metrics=(metric, "answered_qps", "capacity_qps"),
        remedy=f"Take the figure as a lower limit. {remedy(host)}",
    )


def _highest_qps(run: Run, variant: str) -> float | None:
    """Median over the repeats of what was answered when the generator asked for all it could get."""
    found = [trial.load.highest_qps for trial in run.of_variant(variant) if trial.record.outcome in ("done", "timeout")]
    known = [qps for qps in found if qps]
    return statistics.median(known) if known else None


def _rest(spec: TrialSpec) -> tuple[tuple[str, Scalar], ...]:
    """The point of the matrix without the server under test."""
    server = spec.server
    return tuple(pair for pair in spec.variant.parameters.items() if server is None or pair[1] != server.name)


def _kind(spec: TrialSpec) -> str:
    server = spec.server
    return server.kind if server else ""


def _is_echo(spec: TrialSpec) -> bool:
    """Whether it only reflects, without a fault that was asked for."""
    return _kind(spec) == "echo" and not any(spec.hosts[spec.subject].settings.get(fault) for fault in FAULTS)
